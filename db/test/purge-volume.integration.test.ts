import postgres from "postgres";
import { expect, test } from "vitest";
import { getStats } from "../src/queries/get-stats.ts";
import { review } from "./artifact-fixtures.ts";
import { registerOne } from "./callback-fixtures.ts";
import { openTestDatabase, submitOne } from "./job-fixtures.ts";
import { countRows, insertExpiredJobs, passMinute, purge } from "./purge-fixtures.ts";

const isLong = process.env["KEBLE_LONG"] === "1";
/** The gate purges a five-hundredth of it. */
const EXPIRED = isLong ? 900_000 : 1_800;
const DEAD_LETTERS = EXPIRED / 9;
const PINNED = EXPIRED / 9;
const CHUNK = 20_000;
const BATCH_JOBS = 200;

test(
  "R2 a heap of expired jobs goes in short transactions while submits go on; dead letters and pinned bytes stay",
  async () => {
    await using database = await openTestDatabase();
    const owner = postgres(database.migrationUrl, { max: 1, onnotice: () => undefined });
    const endpoint = await registerOne(database);
    for (let left = EXPIRED; left > 0; left -= CHUNK) {
      await insertExpiredJobs(database, { count: Math.min(left, CHUNK), attempts: 1 });
    }
    for (let left = DEAD_LETTERS; left > 0; left -= CHUNK) {
      await insertExpiredJobs(database, {
        count: Math.min(left, CHUNK),
        attempts: 1,
        callerId: "dead",
        endpointId: endpoint.id,
      });
    }
    await owner`update jobs set expires_at = null where caller_id = 'dead'`;
    await owner`
      update callback_events set state = 'DEAD_LETTER', dead_letter_reason = 'BUDGET_SPENT', expires_at = null where caller_id = 'dead'`;
    await pinBytes(owner);
    await owner`vacuum analyze`;
    const seenIn = await timed(async () => {
      const stats = await getStats(database.reads, { rowsPerMinute: 1_000, auditDays: 400 });
      const count = Math.min(EXPIRED, 100_000);
      expect(stats.purge.kinds.jobs.backlog).toMatchObject({ count, isLowerBound: EXPIRED > 100_000 });
    });

    const over = new AbortController();
    let submitted = 0;
    const submits: number[] = [];
    const submitting = (async () => {
      while (!over.signal.aborted) {
        submits.push(await timed(() => submitOne(database, {}, "live")));
        submitted += 1;
      }
    })();
    const batches: number[] = [];
    let gone = 0;
    let since: Date | null = null;
    const startedAt = performance.now();
    for (;;) {
      const at = performance.now();
      const answer = await purge(database, "jobs", { batch: BATCH_JOBS, rowsPerMinute: 10_000_000, since });
      batches.push(performance.now() - at);
      if (answer.verdict !== "PURGED") throw new Error(answer.verdict);
      gone += answer.rows;
      if (answer.next === null) break;
      since = answer.next.since;
    }
    const seconds = (performance.now() - startedAt) / 1_000;
    over.abort();
    await submitting;

    expect(gone).toBe(EXPIRED);
    expect(await countRows(database, "jobs")).toBe(DEAD_LETTERS + submitted);
    expect(await countRows(database, "attempts")).toBe(DEAD_LETTERS);
    expect(await countRows(database, "callback_events")).toBe(DEAD_LETTERS);
    const [held] = await owner<[{ count: number }]>`
      select count(*)::int as count from artifacts a join blobs b on b.id = a.blob_id join artifact_pins p on p.artifact_id = a.id
      where a.state = 'AVAILABLE' and b.state = 'AVAILABLE' and a.review_at <= now()`;
    expect(held.count).toBe(PINNED);
    expect(submitted).toBeGreaterThan(0);
    let looked = 0;
    for (let last = 1; last > 0; looked += last) last = (await review(database, { limit: 1_000 })).reviewed;
    expect(looked).toBeGreaterThanOrEqual(PINNED);
    expect(await owner`select 1 from artifacts where state = 'AVAILABLE'`).toHaveLength(PINNED);
    expect(await owner`select 1 from blobs where state = 'AVAILABLE'`).toHaveLength(PINNED);
    await passMinute(database);
    expect(await purge(database, "jobs")).toEqual({ verdict: "PURGED", rows: 0, next: null });
    await owner.end({ timeout: 1 });
    const ms = (times: readonly number[], share: number) =>
      times.toSorted((a, b) => a - b)[Math.ceil(times.length * share) - 1]?.toFixed(1);
    if (!isLong) return;
    console.log(
      [
        `${gone} jobs purged in ${seconds.toFixed(1)} s, ${(gone / seconds).toFixed(0)} a second`,
        `transactions of ${BATCH_JOBS}: p50 ${ms(batches, 0.5)} ms, p99 ${ms(batches, 0.99)} ms, longest ${ms(batches, 1)} ms`,
        `${submitted} submits meanwhile: p50 ${ms(submits, 0.5)} ms, p99 ${ms(submits, 0.99)} ms, longest ${ms(submits, 1)} ms`,
        `stats with that backlog: ${seenIn.toFixed(0)} ms`,
      ].join("\n"),
    );
  },
  isLong ? 1_800_000 : 30_000,
);

/** Gives some of the expired jobs an artifact each, which is pinned. */
async function pinBytes(owner: postgres.Sql): Promise<void> {
  await owner`
    insert into blobs (id, sha256, generation, size_bytes)
    select uuid_v7(), sha256(g::text::bytea), 'g', 1 from generate_series(1, ${PINNED}::int) g`;
  await owner`
    insert into artifacts (id, caller_id, blob_id, sha256, size_bytes, source_url, final_url, http_status, fetched_at, review_at)
    select uuid_v7(), 'acme', id, sha256, 1, 'u', 'u', 200, now(), 'infinity' from blobs`;
  await owner`
    insert into artifact_pins (artifact_id, owner, retention_revision) select id, 'books', 1 from artifacts`;
  await owner`
    update jobs j set artifact_id = x.artifact_id
    from (select j.id, a.id as artifact_id
          from (select id, row_number() over (order by id) as n from jobs where caller_id = 'acme' limit ${PINNED}) j
          join (select id, row_number() over (order by id) as n from artifacts) a on a.n = j.n) x
    where j.id = x.id`;
}

/** How long it took, in milliseconds. */
async function timed(run: () => Promise<unknown>): Promise<number> {
  const at = performance.now();
  await run();
  return performance.now() - at;
}
