import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase } from "@keble-scraper/testkit";
import { drizzle } from "drizzle-orm/postgres-js";
import { migrate as migrateWithDrizzle } from "drizzle-orm/postgres-js/migrator";
import postgres from "postgres";
import { expect, test } from "vitest";
import { completeObjectDeletions, reviewArtifacts, takeObjectDeletions } from "../src/commands/artifacts/index.ts";
import { purgeBatch } from "../src/commands/retention/index.ts";
import { createDatabase } from "../src/database.ts";
import { migrate, MIGRATIONS_FOLDER } from "../src/migrate.ts";
import { REVIEW } from "./artifact-fixtures.ts";
import { BATCH } from "./purge-fixtures.ts";

/** Brings a database to the schema that had so many migrations. */
async function migrateTo(count: number, migrationUrl: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "migrations-"));
  const client = postgres(migrationUrl, { max: 1, onnotice: () => undefined });
  try {
    await cp(MIGRATIONS_FOLDER, folder, { recursive: true });
    const path = join(folder, "meta", "_journal.json");
    const journal = JSON.parse(await readFile(path, "utf8")) as { entries: unknown[] };
    await writeFile(path, JSON.stringify({ ...journal, entries: journal.entries.slice(0, count) }));
    await migrateWithDrizzle(drizzle(client), { migrationsFolder: folder });
  } finally {
    await client.end({ timeout: 5 });
    await rm(folder, { recursive: true, force: true });
  }
}

/** A job as the version before the ways out inserts it. */
function insertJob(sql: postgres.Sql, url: string, state: "QUEUED" | "RUNNING" | "CANCELLED") {
  const [isRunning, isOver] = [state === "RUNNING", state === "CANCELLED"];
  return sql<{ id: string }[]>`
    insert into jobs (id, caller_id, request_sha256, target, transport, routes, freshness, accept, robots, labels,
      attempt_budget, max_body_bytes, cost_cap_micros, created_at, due_at, deadline_at, status, lease_token, lease_until, finished_at)
    values (gen_random_uuid(), 'acme', '\\x00', ${sql.json({ url, method: "GET", headers: {} })}, 'HTTP', '{DIRECT}', 'NO_CACHE',
      'SUCCESS_ONLY', 'RESPECT', '{}', 3, 1000, 0, now(), now(), now() + interval '1 h', ${state},
      ${isRunning ? crypto.randomUUID() : null}::uuid, case when ${isRunning} then now() + interval '1 minute' end,
      case when ${isOver} then now() end)
    returning id`.execute();
}

test("a database with jobs in every state comes to the ways out with each one's host, and the version before goes on submitting", async () => {
  await using made = await createTestDatabase({
    migrate: ({ migrationUrl }) => migrateTo(2, migrationUrl),
    template: "before_ways_out",
  });
  const owner = postgres(made.migrationUrl, { max: 1, onnotice: () => undefined });
  try {
    await insertJob(owner, "https://shop.example.com/p/1?q=/x", "QUEUED");
    await insertJob(owner, "http://127.0.0.1:8081/", "RUNNING");
    await insertJob(owner, "https://[2001:db8::1]:8443/", "CANCELLED");
    expect((await migrate({ migrationUrl: made.migrationUrl, appUrl: made.url })).applied).toBeGreaterThan(0);
    const rows = await owner`select host_key, status from jobs order by status desc`;
    expect(rows).toEqual([
      { host_key: "127.0.0.1:8081", status: "RUNNING" },
      { host_key: "shop.example.com", status: "QUEUED" },
      { host_key: "[2001:db8::1]:8443", status: "CANCELLED" },
    ]);
    // Both versions run while one replaces the other.
    const [job] = await insertJob(owner, "https://shop.example.com:8443/p/2", "QUEUED");
    expect(await owner`select host_key from jobs where id = ${job?.id ?? null}`).toEqual([
      { host_key: "shop.example.com:8443" },
    ]);
  } finally {
    await owner.end({ timeout: 5 });
  }
});

/** What the version before the deletion of artifacts leaves, by callers and jobs of its own. */
async function fillBefore(sql: postgres.Sql): Promise<void> {
  await sql`
    insert into callback_endpoints (id, caller_id, name, url, attempt_budget, timeout_ms, max_concurrency)
    values ('01900000-0000-7000-8000-000000000001', 'acme', 'orders', 'https://hooks.example.com/', 3, 1000, 1)`;
  await sql`
    insert into blobs (id, sha256, generation, size_bytes)
    select ('01900000-0000-7000-8000-00000000010' || g)::uuid, decode(repeat('0' || g, 32), 'hex'), 'generation-' || g, 5
    from generate_series(1, 3) g`;
  // A job's, a second caller's of the same bytes, an attempt's evidence, and one whose job was taken out by hand.
  await sql`
    insert into artifacts (id, caller_id, blob_id, sha256, size_bytes, source_url, final_url, http_status, fetched_at)
    select ('01900000-0000-7000-8000-00000000020' || a.n)::uuid, a.caller_id, b.id, b.sha256, 5, 'https://a.example/',
           'https://a.example/', 200, now() - interval '40 d'
    from (values (1, 'acme', 1), (2, 'blue', 1), (3, 'acme', 2), (4, 'acme', 3)) a (n, caller_id, blob)
    join blobs b on b.generation = 'generation-' || a.blob`;
  await sql`
    insert into artifacts (id, caller_id, state, sha256, size_bytes, source_url, final_url, http_status, fetched_at, deleted_at)
    values (gen_random_uuid(), 'acme', 'DELETED', decode(repeat('09', 32), 'hex'), 5, 'https://a.example/', 'https://a.example/', 200, now(), now())`;
  await sql`
    insert into object_deletions (id, sha256, generation) values (gen_random_uuid(), decode(repeat('01', 32), 'hex'), 'the-loser')`;
  await sql`
    insert into jobs (id, caller_id, callback_endpoint_id, artifact_id, status, request_sha256, target, host_key, transport, routes, freshness, accept,
      robots, labels, attempt_budget, attempts_used, attempt_number, max_body_bytes, cost_cap_micros, created_at, due_at, deadline_at,
      result, failure, finished_at, expires_at)
    select ('01900000-0000-7000-8000-00000000030' || j.n)::uuid, j.caller_id, case when j.n = 1 then '01900000-0000-7000-8000-000000000001'::uuid end,
           j.artifact::uuid, j.status, '\\x00', '{"url":"https://a.example/","method":"GET","headers":{}}', 'a.example', 'HTTP', '{DIRECT}', 'NO_CACHE',
           'SUCCESS_ONLY', 'RESPECT', '{}', 3, 1, 1, 1000, 0, t.at, t.at, t.at + interval '1 h',
           case when j.status = 'SUCCEEDED' then '{}'::jsonb end, case when j.status = 'FAILED' then '{}'::jsonb end, t.at,
           t.at + interval '39 d'
    from (values (1, 'acme', 'SUCCEEDED', '01900000-0000-7000-8000-000000000201'), (2, 'blue', 'SUCCEEDED', '01900000-0000-7000-8000-000000000202'),
                 (3, 'acme', 'FAILED', null)) j (n, caller_id, status, artifact), (select now() - interval '40 d' as at) t`;
  await sql`
    insert into attempts (id, job_id, evidence_artifact_id, outcome, ordinal, lease_token, route, failure, started_at, finished_at)
    values (gen_random_uuid(), '01900000-0000-7000-8000-000000000303', '01900000-0000-7000-8000-000000000203', 'FAILED', 1,
            gen_random_uuid(), 'DIRECT', '{}', now() - interval '40 d', now() - interval '40 d')`;
  await sql`
    insert into callback_events (id, job_id, endpoint_id, caller_id, state, type, occurred_at, ended_at, expires_at)
    values (gen_random_uuid(), '01900000-0000-7000-8000-000000000301', '01900000-0000-7000-8000-000000000001', 'acme', 'DELIVERED',
            'job.succeeded', now() - interval '40 d', now() - interval '40 d', now() - interval '10 d')`;
}

test("A3 a database that was filled before artifacts were deleted is migrated with all it holds, and then comes to rest", async () => {
  await using made = await createTestDatabase({
    migrate: ({ migrationUrl }) => migrateTo(3, migrationUrl),
    template: "before_deletion",
  });
  const owner = postgres(made.migrationUrl, { max: 1, onnotice: () => undefined });
  const pools = { applicationName: "test", commandConnections: 2, readConnections: 1, statementTimeoutMs: 20_000 };
  const database = createDatabase({ url: made.url, ...pools });
  const sql = database.commands;
  const stored = async () =>
    (await sql<{ id: string }[]>`select generation as id from blobs order by 1`).map(({ id }) => id);
  const purge = async () => {
    for (const kind of ["events", "jobs", "tombstones"] as const) await purgeBatch(sql, { ...BATCH, kind });
  };
  const deleteObjects = async () => {
    await sql`update object_deletions set due_at = clock_timestamp() - interval '1 ms'`;
    const taken = await takeObjectDeletions(sql, 50);
    await completeObjectDeletions(
      sql,
      taken.map(({ id }) => id),
    );
    return taken.map(({ generation }) => generation).toSorted();
  };
  try {
    await fillBefore(owner);
    await migrate({ migrationUrl: made.migrationUrl, appUrl: made.url });
    // The version before reads artifacts by these columns, until it is replaced.
    await sql`select id, state, sha256, generation, size_bytes, created_at, deleted_at from blobs`;
    // What jobs hold stays; evidence of long ago and what nothing holds goes, and so does the loser.
    await reviewArtifacts(sql, REVIEW);
    expect(await deleteObjects()).toEqual(["generation-2", "generation-3", "the-loser"]);
    expect(await stored()).toEqual(["generation-1"]);
    await purge();
    await reviewArtifacts(sql, REVIEW);
    expect(await deleteObjects()).toEqual(["generation-1"]);
    await sql`update artifacts set review_at = clock_timestamp() - interval '1 s'`;
    await purge();
    const [left] = await sql`
      select (select count(*) from artifacts)::int as artifacts, (select count(*) from jobs)::int as jobs,
             (select count(*) from object_deletions)::int as deletions, (select count(*) from callback_events)::int as events`;
    expect(left).toEqual({ artifacts: 0, jobs: 0, deletions: 0, events: 0 });
  } finally {
    await database.stop(performance.now() + 1_000);
    await owner.end({ timeout: 5 });
  }
});
