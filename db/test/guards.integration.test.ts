import { createTestDatabase } from "@keble-scraper/testkit";
import postgres from "postgres";
import { expect, test } from "vitest";
import { settleJobs } from "../src/commands/fetching/index.ts";
import { NewerSchemaError, isSchemaReady, migrate } from "../src/migrate.ts";
import { appendAudit } from "../src/steps/append-audit.ts";
import { OPTIONS, claimOne, openTestDatabase, submitOne, succeeded } from "./job-fixtures.ts";

async function asOwner<T>(url: string, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

test("R3 attempts never change and leave only with their job, for the app and for the owner", async () => {
  await using database = await openTestDatabase();
  const sql = database.commands;
  const id = await submitOne(database);
  await settleJobs(sql, [succeeded(await claimOne(database))], OPTIONS);
  await expect(sql`update attempts set outcome = 'FAILED'`).rejects.toThrow(/permission denied/);
  await expect(sql`delete from attempts`).rejects.toThrow(/permission denied/);
  await expect(sql`truncate attempts`).rejects.toThrow(/permission denied/);
  await asOwner(database.migrationUrl, async (owner) => {
    await expect(owner`update attempts set http_status = 1`).rejects.toThrow(/attempts never change/);
    await expect(owner`delete from attempts`).rejects.toThrow(/attempts never change/);
    await expect(owner`truncate attempts`).rejects.toThrow(/attempts never change/);
  });
  await sql`delete from jobs where id = ${id}`;
  expect(await sql`select 1 from attempts`).toHaveLength(0);
});

test("R3 audit rows never change and leave only by their own clock, for the app and for the owner", async () => {
  await using database = await openTestDatabase();
  const sql = database.commands;
  const entry = {
    action: "test.done",
    by: { actor: "system:test", requestId: null },
    callerId: null,
    subject: "test:1",
  };
  await appendAudit(sql, entry);
  await appendAudit(sql, entry, -1);
  await expect(sql`update audit_events set action = 'x'`).rejects.toThrow(/permission denied/);
  await expect(sql`delete from audit_events`).rejects.toThrow(/audit events never change/);
  await expect(sql`truncate audit_events`).rejects.toThrow(/permission denied/);
  await asOwner(database.migrationUrl, async (owner) => {
    await expect(owner`update audit_events set action = 'x'`).rejects.toThrow(/audit events never change/);
    await expect(owner`delete from audit_events`).rejects.toThrow(/audit events never change/);
    await expect(owner`truncate audit_events`).rejects.toThrow(/audit events never change/);
  });
  await sql`delete from audit_events where expires_at <= clock_timestamp()`;
  expect(await sql`select 1 from audit_events`).toHaveLength(1);
});

test("twenty migrations at once on an empty database apply each migration once", async () => {
  await using empty = await createTestDatabase({ migrate: () => Promise.resolve(), template: "empty" });
  const run = () => migrate({ migrationUrl: empty.migrationUrl, appUrl: empty.url });
  const results = await Promise.all(Array.from({ length: 20 }, run));
  expect(results.filter((result) => result.applied > 0)).toHaveLength(1);
  await asOwner(empty.migrationUrl, async (sql) => expect(await isSchemaReady(sql)).toBe(true));
});

test("the app role may make temporary tables, also where not everybody may", async () => {
  await using empty = await createTestDatabase({ migrate: () => Promise.resolve(), template: "empty" });
  const database = decodeURIComponent(new URL(empty.migrationUrl).pathname.slice(1));
  await asOwner(empty.migrationUrl, (sql) => sql`revoke temporary on database ${sql(database)} from public`);
  await migrate({ migrationUrl: empty.migrationUrl, appUrl: empty.url });
  await asOwner(empty.url, async (sql) => {
    await sql`create temporary table work (id int)`;
    expect(await sql`select id from work`).toHaveLength(0);
  });
});

test("a database of a newer version is not migrated, and services of this version go on", async () => {
  await using database = await openTestDatabase();
  await asOwner(
    database.migrationUrl,
    (owner) => owner`insert into drizzle.__drizzle_migrations (hash, created_at) values ('newer', 9999999999999)`,
  );
  await expect(migrate({ migrationUrl: database.migrationUrl, appUrl: database.url })).rejects.toThrow(
    NewerSchemaError,
  );
  await asOwner(database.migrationUrl, async (sql) => expect(await isSchemaReady(sql)).toBe(true));
});

test("a service of this version is not ready before its migrations were applied", async () => {
  await using empty = await createTestDatabase({ migrate: () => Promise.resolve(), template: "empty" });
  await asOwner(empty.migrationUrl, async (sql) => expect(await isSchemaReady(sql)).toBe(false));
});

test("ids made in SQL are UUID version 7 and carry the time", async () => {
  await using database = await openTestDatabase();
  const [row] = await database.commands<{ id: string }[]>`select uuid_v7() as id`;
  expect(row?.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const ms = Number.parseInt(row!.id.replaceAll("-", "").slice(0, 12), 16);
  expect(Math.abs(ms - Date.now())).toBeLessThan(60_000);
});
