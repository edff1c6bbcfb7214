import { AuditPage, type AuditQuery } from "@keble-scraper/contract";
import { drizzle } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listAuditEvents, parseCursor } from "../src/index.ts";
import { openTestDatabase } from "./job-fixtures.ts";

type Narrowing = Omit<AuditQuery, "limit" | "cursor">;

/** Rows of the big audit below: one every 172.8 s, so 500 a day for a hundred days, ending now. */
const ROWS = 50_000;
const DAY_MS = 86_400_000;

let database: Awaited<ReturnType<typeof openTestDatabase>>;

beforeAll(async () => {
  database = await openTestDatabase();
  await database.commands`
    with times as (
      select n, clock_timestamp() - make_interval(secs => (${ROWS} - n) * 172.8) as at
      from generate_series(1, ${ROWS}) n
    )
    insert into audit_events (id, caller_id, action, actor, subject, request_id, details, occurred_at, expires_at)
    select overlay(replace(uuid_v7()::text, '-', '')
                   placing lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') from 1 for 12)::uuid,
           'caller-' || n % 100, case n % 500 when 0 then 'route.released' else 'artifact.download-signed' end,
           'key-' || n % 1000, 'artifact:' || n % 5000, 'request-' || n, jsonb_build_object('n', n), at, at + interval '400 days'
    from times`;
  await database.commands`analyze audit_events`;
});
afterAll(() => database[Symbol.asyncDispose]());

const list = async (narrowing: Narrowing, limit = 50, afterId: string | null = null) =>
  listAuditEvents(database.reads, { ...narrowing, limit, afterId });

async function numbers(narrowing: Narrowing): Promise<unknown[]> {
  return (await list(narrowing)).items.map((row) => row.details["n"]);
}

test("the audit is read newest first, page by page, each row once", async () => {
  const seen: unknown[] = [];
  let afterId: string | null = null;
  for (let page = 0; page < 3; page += 1) {
    const { items, nextCursor }: AuditPage = AuditPage.parse(await list({ actor: "key-7" }, 20, afterId));
    seen.push(...items.map((row) => row.details["n"]));
    afterId = nextCursor === null ? null : parseCursor(nextCursor);
  }
  expect(seen).toEqual(Array.from({ length: 50 }, (_, n) => 49_007 - 1000 * n));
  expect(afterId).toBe(null);
});

test("the audit is narrowed by action, actor, subject, caller and time, all of it together", async () => {
  expect(await numbers({ action: "route.released", callerId: "caller-0", subject: "artifact:500" })).toEqual(
    Array.from({ length: 10 }, (_, n) => 45_500 - 5000 * n),
  );
  expect(await numbers({ action: "route.released", actor: "key-1" })).toEqual([]);
  const [row] = (await list({ subject: "artifact:1" })).items;
  const occurredAt = row?.occurredAt ?? "";
  expect(row).toMatchObject({ callerId: "caller-1", requestId: "request-45001", details: { n: 45_001 } });
  expect(await numbers({ subject: "artifact:1", occurredAfter: occurredAt })).toEqual([]);
  const later = new Date(Date.parse(occurredAt) + 1).toISOString();
  const earlier = new Date(Date.parse(occurredAt) - 1).toISOString();
  expect(await numbers({ subject: "artifact:1", occurredAfter: earlier, occurredBefore: later })).toEqual([45_001]);
  expect(await numbers({ subject: "artifact:1", occurredBefore: occurredAt })).toHaveLength(9);
  expect(await numbers({ occurredBefore: "0001-01-01T00:00:00Z" })).toEqual([]);
  expect(await numbers({ occurredAfter: "9999-12-31T23:59:59Z" })).toEqual([]);
});

// A process's clock makes the id, the database's the time.
test("a row whose maker's clock was hours off is still found by its time", async () => {
  const [at, id] = [new Date(Date.now() - 50 * DAY_MS), uuidv7({ msecs: Date.now() - 50 * DAY_MS + DAY_MS / 2 })];
  await database.commands`
    insert into audit_events (id, action, actor, subject, occurred_at, expires_at)
    values (${id}, 'clock.off', 'system:test', 'test:1', ${at}, ${new Date(Date.now() + DAY_MS)})`;
  const around = {
    occurredAfter: new Date(at.getTime() - 1).toISOString(),
    occurredBefore: new Date(at.getTime() + 1).toISOString(),
  };
  expect((await list(around)).items.map((row) => row.action)).toEqual(["clock.off"]);
});

// The audit holds 400 days. A page of it that reads it all would take seconds, and one from long ago would read all that
// came after it.
test("every way to narrow the audit is served by an index, and reads little that it does not show", async () => {
  const client = postgres(database.url, { max: 1, onnotice: () => undefined });
  const asked: { query: string; params: unknown[] }[] = [];
  const reads = drizzle(client, { logger: { logQuery: (query, params) => asked.push({ query, params }) } });
  const longAgo = new Date(Date.now() - 90 * DAY_MS).toISOString();
  const ways: Narrowing[] = [
    {},
    { action: "route.released" },
    { action: "artifact.download-signed" },
    { action: "no.such-action" },
    { actor: "key-7" },
    { subject: "artifact:1" },
    { callerId: "caller-1" },
    { callerId: "caller-1", action: "artifact.download-signed" },
    { occurredAfter: new Date(Date.now() - DAY_MS).toISOString() },
    { occurredBefore: longAgo },
    { occurredBefore: longAgo, action: "artifact.download-signed" },
    { occurredAfter: longAgo, occurredBefore: longAgo },
  ];
  for (const way of ways) {
    for (const afterId of [null, uuidv7({ msecs: Date.now() - 80 * DAY_MS })]) {
      asked.length = 0;
      await listAuditEvents(reads, { ...way, limit: 50, afterId });
      const [{ query, params }] = asked as [{ query: string; params: unknown[] }];
      const plan = (await client.unsafe(`explain (analyze, costs off, timing off) ${query}`, params as string[]))
        .map((row) => String(row["QUERY PLAN"]))
        .join("\n");
      expect(plan, JSON.stringify(way)).not.toContain("Seq Scan");
      const removed = [...plan.matchAll(/Rows Removed by Filter: (\d+)/g)].map(([, rows]) => Number(rows));
      expect(Math.max(0, ...removed), `${JSON.stringify(way)}\n${plan}`).toBeLessThan(6_000);
    }
  }
  await client.end({ timeout: 1 });
});
