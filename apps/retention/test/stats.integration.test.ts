import { randomUUID } from "node:crypto";
import type { Principal, Stats } from "@keble-scraper/contract";
import { createDatabase, type Database, migrate } from "@keble-scraper/db";
import { claimDeliveries, registerEndpoint } from "@keble-scraper/db/commands/callbacks";
import { claimJobs } from "@keble-scraper/db/commands/fetching";
import { cancelJob } from "@keble-scraper/db/commands/intake";
import { createTestDatabase, type TestDatabase } from "@keble-scraper/testkit";
import { createInternalClient, parseSettings, SYSTEM_CLOCK } from "@keble-scraper/service";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRetention } from "../src/app.ts";
import type { RetentionRouter } from "../src/router.ts";
import { createStatsReader } from "../src/stats/create-stats-reader.ts";

let clone: TestDatabase;
let database: Database;
beforeAll(async () => {
  clone = await createTestDatabase({ migrate });
  database = createDatabase({
    url: clone.url,
    applicationName: "test",
    commandConnections: 2,
    readConnections: 1,
    statementTimeoutMs: 20_000,
  });
  await seed();
});
afterAll(async () => {
  await database.stop(performance.now() + 1_000);
  await clone[Symbol.asyncDispose]();
});

const NONE = { count: 0, isLowerBound: false, oldestSeconds: null };
const some = (count: number) => ({ count, isLowerBound: false });
const HOUR_MS = 3_600_000;

async function insertJobs(count: number, columns: Record<string, string>): Promise<void> {
  const names = Object.keys(columns).join(", ");
  const values = Object.values(columns).join(", ");
  await database.commands.unsafe(`
    insert into jobs (id, caller_id, request_sha256, target, host_key, transport, routes, freshness, accept, robots, labels,
      attempt_budget, max_body_bytes, cost_cap_micros, created_at, deadline_at, ${names})
    select uuid_v7(), 'acme', '\\x00', '{"url":"https://a.example/","method":"GET","headers":{}}', 'a.example', 'HTTP', '{DIRECT}',
      'NO_CACHE', 'SUCCESS_ONLY', 'RESPECT', '{}', 3, 1000, 0, now(), now() + interval '1 h', ${values}
    from generate_series(1, ${count}) g`);
}

/** Some of everything that is counted. */
async function seed(): Promise<void> {
  const sql = database.commands;
  await insertJobs(3, { status: "'RUNNING'", due_at: "now()", lease_token: "gen_random_uuid()", lease_until: "now()" });
  await insertJobs(5, { due_at: "now() - interval '100 s'" });
  await insertJobs(4, { due_at: "now() + interval '1 h'" });
  const ended = (hours: number) => `date_trunc('hour', now(), 'UTC') - interval '${hours} h' + interval '1 s'`;
  await insertJobs(6, {
    status: "'CANCELLED'",
    due_at: "now()",
    finished_at: ended(0),
    expires_at: "now() - interval '1 min'",
  });
  await insertJobs(7, { status: "'SUCCEEDED'", due_at: "now()", result: "'{}'", finished_at: ended(3) });
  await insertJobs(1, { status: "'FAILED'", due_at: "now()", failure: "'{}'", finished_at: ended(3) });
  await insertJobs(9, { status: "'SUCCEEDED'", due_at: "now()", result: "'{}'", finished_at: ended(25) });
  await sql`
    insert into audit_events (id, action, actor, subject, expires_at)
    values (uuid_v7(), 'a.b', 'system:test', 's', now() - interval '30 s'), (uuid_v7(), 'a.b', 'system:test', 's', now() + interval '1 h')`;
  await sql`insert into budgets (scope, name, period, starts_on) values ('CALLER', 'acme', 'DAY', now()::date - 500), ('CALLER', 'acme', 'MONTH', now()::date)`;
  await sql`
    insert into store_findings (id, kind, sha256, generation, found_at, expires_at)
    select uuid_v7(), k, '\\x01', 'g', now(), now() + interval '1 h' from unnest(array['MISSING', 'DAMAGED', 'ORPHAN', 'ORPHAN']) k`;
  await sql`insert into object_deletions (id, sha256, generation, due_at) values (uuid_v7(), '\\x01', 'a', now() - interval '5 s'), (uuid_v7(), '\\x01', 'b', now() + interval '1 h')`;
  await sql`
    insert into artifacts (id, caller_id, state, sha256, size_bytes, source_url, final_url, http_status, fetched_at, deleted_at, review_at)
    values (uuid_v7(), 'acme', 'DELETED', '\\x01', 0, 'u', 'u', 200, now(), now(), now() - interval '7 s')`;
  await sql`update store_scrub set pass_ended_at = '2026-11-30T10:00:00Z'`;
  await sql`update purge_turn set minute = date_trunc('minute', clock_timestamp()), purged = '{"jobs": 12}'`;
  await seedCallbacks();
}

/** An event that waits, one that is a dead letter for an hour, and one that was delivered and has expired. */
async function seedCallbacks(): Promise<void> {
  const sql = database.commands;
  const endpoint = {
    id: randomUUID(),
    callerId: "acme",
    name: "orders",
    url: "https://hooks.example.com/",
    events: null,
    attemptBudget: 3,
    timeoutMs: 1_000,
    maxConcurrency: 5,
    secret: { keyId: "0a1b2c3d", ciphertext: Buffer.from("sealed") },
  };
  await registerEndpoint(sql, endpoint, { actor: "system:test", requestId: null });
  await insertJobs(3, { due_at: "now() + interval '2 h'", callback_endpoint_id: `'${endpoint.id}'` });
  const jobs = await sql<{ id: string }[]>`select id from jobs where callback_endpoint_id is not null`;
  for (const { id } of jobs) await cancelJob(sql, { id, callerId: null }, { jobRetentionMs: 1_000 });
  const [dead, gone] = await sql<{ id: string }[]>`select id from callback_events order by id`;
  await sql`update callback_deliveries set state = 'DEAD_LETTER', ended_at = now() where event_id in (${dead!.id}, ${gone!.id})`;
  await sql`update callback_events set state = 'DEAD_LETTER', dead_letter_reason = 'BUDGET_SPENT', ended_at = now() - interval '1 h' where id = ${dead!.id}`;
  await sql`update callback_events set state = 'DELIVERED', ended_at = now(), expires_at = now() - interval '1 s' where id = ${gone!.id}`;
  expect(await claimJobs(sql, claimOf("RENDER"))).toMatchObject({ leases: [] });
  expect((await claimDeliveries(sql, { slots: 0, leaseSeconds: 60, afterEndpointId: null })).leases).toEqual([]);
}

const claimOf = (transport: "HTTP" | "RENDER") =>
  ({ transport, slots: 1, leaseSeconds: 60, afterCaller: "", of: "TRUSTED", callerRunningMax: null }) as const;

function settings() {
  const parsed = parseSettings({
    SCRAPER_ENVIRONMENT: "test",
    SCRAPER_LOG_LEVEL: "silent",
    SCRAPER_DATABASE_URL: clone.url,
    SCRAPER_REDIS_URL: "redis://127.0.0.1:1",
    SCRAPER_SERVICE_TOKEN: "a-service-token-for-tests",
    SCRAPER_SECRET_KEY: "ab".repeat(32),
    SCRAPER_INTERNAL_PORT: "0",
    SCRAPER_PURGE_ROWS_PER_MINUTE: "77",
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return parsed.value;
}

/** A clock that a test moves. */
function handClock() {
  let at = 0;
  return { monotonicMs: () => at, wallMs: () => SYSTEM_CLOCK.wallMs(), pass: (ms: number) => (at += ms) };
}

const reader = (clock = handClock()) => createStatsReader({ database, rowsPerMinute: 77, auditDays: 400, clock });

test("the service tells operators, and nobody else, how the deployment is doing", async () => {
  const container = createRetention(settings());
  await container.start();
  const { client, close } = createInternalClient<RetentionRouter>({
    url: container.url,
    serviceToken: "a-service-token-for-tests",
    timeoutMs: 5_000,
    part: "retention",
  });
  try {
    const call = () => ({ context: { requestId: "r-1", deadlineAt: Date.now() + 5_000 } });
    const operator: Principal = { keyId: randomUUID(), kind: "OPERATOR", callerId: null, scopes: [] };
    const answer = await client.getStats.query({ principal: operator }, call());
    if (!answer.ok) throw new Error(answer.failure.code);
    expect(answer.value.purge.rowsPerMinute).toBe(77);
    const service: Principal = { keyId: randomUUID(), kind: "SERVICE", callerId: "acme", scopes: ["jobs:read"] };
    expect(await client.getStats.query({ principal: service }, call())).toMatchObject({
      ok: false,
      failure: { code: "FORBIDDEN" },
    });
  } finally {
    await close();
    await container.stop(1_000);
  }
});

test("the stats count what is open, due, stuck, expired and to be deleted, and say how old it is", async () => {
  const stats = await reader()();
  expect(stats.openJobs).toEqual({ queued: some(5), waiting: some(4), running: some(3) });
  expect(stats.due).toMatchObject(some(5));
  expect(stats.due.oldestSeconds).toBeGreaterThanOrEqual(100);
  expect(stats.due.oldestSeconds).toBeLessThan(200);
  expect(stats.callbacks).toMatchObject({ due: some(1), deadLetters: some(1) });
  expect(stats.callbacks.deadLetters.oldestSeconds).toBeGreaterThanOrEqual(3_600);
  const { kinds } = stats.purge;
  const backlog = Object.fromEntries(Object.entries(kinds).map(([kind, row]) => [kind, row.backlog.count]));
  expect(backlog).toEqual({
    events: 1,
    jobs: 6,
    cache: 0,
    flights: 0,
    tombstones: 1,
    findings: 0,
    budgets: 1,
    audit: 1,
  });
  expect(kinds.jobs.backlog.oldestSeconds).toBeGreaterThanOrEqual(60);
  expect(kinds.cache.backlog).toEqual(NONE);
  expect(stats.store).toMatchObject({
    artifactsToReview: NONE,
    objectsToDelete: some(1),
    findings: { missing: some(1), damaged: some(1), orphans: some(2) },
    lastListingEndedAt: "2026-11-30T10:00:00.000Z",
  });
});

test("the stats say what the minute that runs has purged, and nothing of a minute that is over", async () => {
  await database.commands`update purge_turn set minute = date_trunc('minute', clock_timestamp()), purged = '{"jobs": 12}'`;
  const running = await reader()();
  await database.commands`update purge_turn set minute = minute - interval '1 minute'`;
  const over = await reader()();
  // Only a minute that ended between two statements could make the first 0.
  expect([0, 12]).toContain(running.purge.kinds.jobs.purged);
  expect(over.purge.kinds.jobs.purged).toBe(0);
});

test("ended jobs are counted by the hour of their end, for 24 hours and the one that runs", async () => {
  const { endedByHour, observedAt } = await reader()();
  const current = Math.floor(Date.parse(observedAt) / HOUR_MS) * HOUR_MS;
  expect(endedByHour.map((row) => Date.parse(row.hour))).toEqual(
    Array.from({ length: 25 }, (_, index) => current - (24 - index) * HOUR_MS),
  );
  expect(endedByHour.at(-1)).toMatchObject({ succeeded: 0, failed: 0, cancelled: 9, isLowerBound: false });
  expect(endedByHour.at(-4)).toMatchObject({ succeeded: 7, failed: 1, cancelled: 0 });
  const sum = (key: "succeeded" | "failed" | "cancelled") => endedByHour.reduce((total, row) => total + row[key], 0);
  expect([sum("succeeded"), sum("failed"), sum("cancelled")]).toEqual([7, 1, 9]);
});

test("the database is asked once in five seconds, however many ask, and again after an answer that failed", async () => {
  const clock = handClock();
  const read = reader(clock);
  const first = await Promise.all([read(), read(), read()]);
  expect(new Set(first).size).toBe(1);
  clock.pass(4_999);
  expect(await read()).toBe(first[0]);
  clock.pass(1);
  expect(await read()).not.toBe(first[0]);

  const gone = createDatabase({
    url: clone.url.replace(/:\d+\//u, ":1/"),
    applicationName: "gone",
    commandConnections: 1,
    readConnections: 1,
    statementTimeoutMs: 500,
  });
  let reads = gone.reads;
  const failing = createStatsReader({
    database: {
      get reads() {
        return reads;
      },
    },
    rowsPerMinute: 77,
    auditDays: 400,
    clock,
  });
  await expect(failing()).rejects.toThrow();
  reads = database.reads;
  expect(((await failing()) satisfies Stats).due.count).toBe(5);
  await gone.stop(performance.now());
});
