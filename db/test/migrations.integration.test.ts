import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase } from "@keble-scraper/testkit";
import { drizzle } from "drizzle-orm/postgres-js";
import { migrate as migrateWithDrizzle } from "drizzle-orm/postgres-js/migrator";
import postgres from "postgres";
import { expect, test } from "vitest";
import { migrate, MIGRATIONS_FOLDER } from "../src/migrate.ts";

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
    expect(await migrate({ migrationUrl: made.migrationUrl, appUrl: made.url })).toEqual({ applied: 1 });
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
