import type { Tx } from "../database.ts";

/**
 * `<name>@<system identifier>`: the identifier is made with the cluster, so that no copy, restored elsewhere under the same
 * name, and no other server has it.
 */
export async function getDatabaseIdentity(sql: Tx): Promise<string> {
  const [row] = await sql<{ identity: string }[]>`
    select current_database() || '@' || system_identifier as identity from pg_control_system()`;
  if (row === undefined) throw new Error("Postgres has no system identifier");
  return row.identity;
}
