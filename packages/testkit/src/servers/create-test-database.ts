import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import postgres from "postgres";
import { TEST_ROLES } from "./test-servers.ts";

/** A database of its own for one test file. Disposing it fails when a connection is still open, then drops it. */
export type TestDatabase = AsyncDisposable & {
  readonly name: string;
  /** Signs in as the app role. */
  readonly url: string;
  /** Signs in as the owner of the schema. */
  readonly migrationUrl: string;
};

type TestDatabaseOptions = {
  /** Brings an empty database to the schema under test; runs once a run, in the template. */
  readonly migrate: (urls: { migrationUrl: string; appUrl: string }) => Promise<unknown>;
  /** Tells one schema from another within a run. Default: `scraper`. */
  readonly template?: string;
};

/** How long a closed client's backend may take to leave; it was seen to take under 20 ms. */
const LEAVE_WITHIN_MS = 3_000;

/**
 * Clones the run's migrated template (20 to 80 ms; the first caller migrates it, others wait). Needs testkit's global
 * setup, that is, the project `integration` or `fault`.
 */
export async function createTestDatabase(options: TestDatabaseOptions): Promise<TestDatabase> {
  const { inject } = await import("vitest");
  const { postgresUrl } = inject("testServers");
  const template = `template_${options.template ?? "scraper"}`;
  const name = `test_${randomBytes(6).toString("hex")}`;
  const admin = postgres(postgresUrl, { max: 1, onnotice: () => undefined });
  try {
    await makeTemplate(admin, postgresUrl, template, options.migrate);
    await admin`create database ${admin(name)} template ${admin(template)} owner ${admin(TEST_ROLES.owner.name)}`;
  } finally {
    await admin.end({ timeout: 5 });
  }
  return {
    name,
    url: urlOf(postgresUrl, name, TEST_ROLES.app),
    migrationUrl: urlOf(postgresUrl, name, TEST_ROLES.owner),
    [Symbol.asyncDispose]: () => dropDatabase(postgresUrl, name),
  };
}

async function makeTemplate(
  admin: postgres.Sql,
  postgresUrl: string,
  template: string,
  migrate: TestDatabaseOptions["migrate"],
): Promise<void> {
  // The lock belongs to the one connection of `admin`; it outlives a failure only as long as that.
  await admin`select pg_advisory_lock(hashtext(${template}))`;
  const [found] = await admin<{ datistemplate: boolean }[]>`
    select datistemplate from pg_database where datname = ${template}`;
  if (found?.datistemplate !== true) {
    if (found !== undefined) await admin`drop database ${admin(template)} with (force)`;
    await admin`create database ${admin(template)} owner ${admin(TEST_ROLES.owner.name)}`;
    await migrate({
      migrationUrl: urlOf(postgresUrl, template, TEST_ROLES.owner),
      appUrl: urlOf(postgresUrl, template, TEST_ROLES.app),
    });
    await admin`alter database ${admin(template)} with is_template true allow_connections false`;
  }
  await admin`select pg_advisory_unlock(hashtext(${template}))`;
}

async function dropDatabase(postgresUrl: string, name: string): Promise<void> {
  const admin = postgres(postgresUrl, { max: 1, onnotice: () => undefined });
  try {
    const open = await openConnections(admin, name);
    await admin`drop database if exists ${admin(name)} with (force)`;
    if (open.length > 0) throw new Error(`Connections left open to ${name}:\n${open.join("\n")}`);
  } finally {
    await admin.end({ timeout: 5 });
  }
}

async function openConnections(admin: postgres.Sql, name: string): Promise<string[]> {
  const deadline = performance.now() + LEAVE_WITHIN_MS;
  for (;;) {
    const rows = await admin<{ application_name: string; state: string | null; query: string }[]>`
      select application_name, state, left(query, 120) as query from pg_stat_activity
      where datname = ${name} and backend_type = 'client backend'`;
    if (rows.length === 0 || performance.now() > deadline) {
      return rows.map((row) => `${row.application_name} (${row.state ?? "unknown"}): ${row.query}`);
    }
    await delay(20);
  }
}

function urlOf(postgresUrl: string, database: string, role: { name: string; password: string }): string {
  const url = new URL(postgresUrl);
  url.username = role.name;
  url.password = role.password;
  url.pathname = `/${database}`;
  return url.href;
}
