import type { Tx } from "../database.ts";

/** Whether a caller has an endpoint of that name, disabled ones included. */
export async function hasCallbackEndpoint(sql: Tx, callerId: string, name: string): Promise<boolean> {
  const rows = await sql`
    select 1 from callback_endpoints where caller_id = ${callerId} and name = ${name} and deleted_at is null`;
  return rows.length > 0;
}
