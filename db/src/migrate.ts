import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { drizzle } from "drizzle-orm/postgres-js";
import { migrate as migrateWithDrizzle } from "drizzle-orm/postgres-js/migrator";
import postgres from "postgres";

/** Where the SQL migrations of this version are. */
export const MIGRATIONS_FOLDER = join(import.meta.dirname, "..", "migrations");

/** "keble" in ASCII: the one advisory lock that migrations of this product take. */
const MIGRATION_LOCK = 0x6b_65_62_6c_65;

/** The database was migrated by a newer version of the product than this one. */
export class NewerSchemaError extends Error {
  override readonly name = "NewerSchemaError";
}

type MigrateOptions = {
  /** The owner of the schema. */
  readonly migrationUrl: string;
  /** The role the services use. Equal users mean that triggers alone guard attempts and audit rows. */
  readonly appUrl: string;
};

/**
 * Brings the schema up to date and gives the app role its rights. Any number may run at once: an advisory lock lets one
 * work (drizzle's own migrate takes none) and the others find nothing to do. Throws `NewerSchemaError` on a database
 * of a newer version.
 */
export async function migrate({ migrationUrl, appUrl }: MigrateOptions): Promise<{ applied: number }> {
  const client = postgres(migrationUrl, { max: 1, onnotice: () => {}, connect_timeout: 10 });
  try {
    await client`select pg_advisory_lock(${MIGRATION_LOCK})`;
    const before = await countApplied(client);
    const known = await countKnown();
    if (before > known) {
      throw new NewerSchemaError(`The database has ${before} migrations, this version knows ${known}.`);
    }
    await migrateWithDrizzle(drizzle(client), { migrationsFolder: MIGRATIONS_FOLDER });
    await grantAppRole(client, decodeURIComponent(new URL(appUrl).username));
    return { applied: (await countApplied(client)) - before };
  } finally {
    await client.end({ timeout: 5 });
  }
}

/**
 * True when the database has all migrations of this version: what a service's readiness asks. A newer version's are no
 * hindrance: migrations expand before they contract, so that both versions run while one replaces the other.
 */
export async function isSchemaReady(sql: postgres.Sql): Promise<boolean> {
  return (await countApplied(sql)) >= (await countKnown());
}

async function countApplied(sql: postgres.Sql): Promise<number> {
  const [found] = await sql<
    { present: boolean }[]
  >`select to_regclass('drizzle.__drizzle_migrations') is not null as present`;
  if (found?.present !== true) return 0;
  const [row] = await sql<{ count: string | number }[]>`select count(*) as count from drizzle.__drizzle_migrations`;
  return Number(row?.count ?? 0);
}

async function countKnown(): Promise<number> {
  const journal = JSON.parse(await readFile(`${MIGRATIONS_FOLDER}/meta/_journal.json`, "utf8")) as {
    entries: unknown[];
  };
  return journal.entries.length;
}

/** `reconcile` works in a temporary table. Public may have the right; else it is given where the owner may give it. */
async function grantTemporary(sql: postgres.Sql, role: string): Promise<void> {
  const [rights] = await sql<{ database: string; has: boolean; mayGive: boolean }[]>`
    select current_database() as database,
           has_database_privilege(${role}, current_database(), 'TEMPORARY') as has,
           has_database_privilege(current_database(), 'TEMPORARY WITH GRANT OPTION') as "mayGive"`;
  if (rights === undefined || rights.has || !rights.mayGive) return;
  await sql`grant temporary on database ${sql(rights.database)} to ${sql(role)}`;
}

/**
 * The app role reads and writes rows, but attempts and audit rows only by inserting (deletes of audit: its own clock), and only
 * reads which store is this database's and what was reset.
 */
async function grantAppRole(sql: postgres.Sql, role: string): Promise<void> {
  const [owner] = await sql<{ user: string }[]>`select current_user as user`;
  if (role === "" || role === owner?.user) return;
  const name = sql(role);
  await sql`grant usage on schema public, drizzle to ${name}`;
  await sql`grant select, insert, update, delete on all tables in schema public to ${name}`;
  await sql`grant select on all tables in schema drizzle to ${name}`;
  await sql`revoke update, delete, truncate on attempts from ${name}`;
  await sql`revoke update, truncate on audit_events from ${name}`;
  await sql`revoke insert, update, delete, truncate on store_namespace, reset_runs from ${name}`;
  await grantTemporary(sql, role);
}
