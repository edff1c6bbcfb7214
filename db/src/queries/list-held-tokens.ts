import type { HeldLease } from "../commands/fetching/renew-leases.ts";
import type { Tx } from "../database.ts";

/** Which of these leases are still held, changing nothing: how a worker learns of a cancel whose hint was lost. */
export async function listHeldTokens(sql: Tx, leases: readonly HeldLease[]): Promise<ReadonlySet<string>> {
  if (leases.length === 0) return new Set();
  const rows = await sql<{ lease_token: string }[]>`
    select j.lease_token from jobs j
    join unnest(${leases.map((lease) => lease.id)}::uuid[], ${leases.map((lease) => lease.token)}::uuid[]) as l (id, token)
      on j.id = l.id
    where j.lease_token = l.token and j.lease_until > clock_timestamp()`;
  return new Set(rows.map((row) => row.lease_token));
}
