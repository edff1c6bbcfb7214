import postgres from "postgres";

/** One database with two roles: the owner migrates it, the app reads and writes rows and can't change the schema. */
export type PreparedDatabase = {
  /** Signs in as the app role. */
  readonly url: string;
  /** Signs in as the owner. */
  readonly migrationUrl: string;
};

/**
 * Makes sure that the database and both roles exist, with these passwords, and returns their URLs. The app role
 * may connect and nothing else: the migrations give it its rights. Names come from our own code and are quoted as identifiers.
 * Safe to repeat; not meant for two callers at once.
 */
export async function prepareDatabase(options: {
  readonly adminUrl: string;
  readonly database: string;
  readonly owner: { readonly name: string; readonly password: string };
  readonly app: { readonly name: string; readonly password: string };
}): Promise<PreparedDatabase> {
  const { adminUrl, database, owner, app } = options;
  const admin = postgres(adminUrl, { max: 1, onnotice: () => undefined });
  try {
    for (const role of [owner, app]) {
      const [found] = await admin`select 1 from pg_roles where rolname = ${role.name}`;
      if (found === undefined) await admin`create role ${admin(role.name)}`;
      // DDL takes no parameters; the server quotes the literal for us.
      const [literal] = await admin<{ quoted: string }[]>`select quote_literal(${role.password}::text) as quoted`;
      await admin.unsafe(`alter role ${quoteName(role.name)} login password ${literal?.quoted ?? "null"}`);
    }
    const [exists] = await admin`select 1 from pg_database where datname = ${database}`;
    if (exists === undefined) await admin`create database ${admin(database)} owner ${admin(owner.name)}`;
    await admin`revoke all on database ${admin(database)} from public`;
    await admin`grant connect on database ${admin(database)} to ${admin(app.name)}`;
  } finally {
    await admin.end({ timeout: 5 });
  }
  const migrationUrl = withCredentials(adminUrl, database, owner);
  return { url: withCredentials(adminUrl, database, app), migrationUrl };
}

function withCredentials(adminUrl: string, database: string, role: { name: string; password: string }): string {
  const url = new URL(adminUrl);
  url.username = encodeURIComponent(role.name);
  url.password = encodeURIComponent(role.password);
  url.pathname = `/${encodeURIComponent(database)}`;
  return url.href;
}

function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
