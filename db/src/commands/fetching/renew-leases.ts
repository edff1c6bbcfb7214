import type { Tx } from "../../database.ts";

/** What a worker holds. */
export type HeldLease = { readonly id: string; readonly token: string };

/** Renews exactly the leases named and returns the tokens that are still held: what is missing was lost. */
export async function renewLeases(
  sql: Tx,
  leases: readonly HeldLease[],
  leaseSeconds: number,
): Promise<ReadonlySet<string>> {
  if (leases.length === 0) return new Set();
  const rows = await sql<{ lease_token: string }[]>`
    with held as materialized (
      select j.id from jobs j
      join unnest(${leases.map((lease) => lease.id)}::uuid[], ${leases.map((lease) => lease.token)}::uuid[]) as l (id, token)
        on j.id = l.id
      where j.lease_token = l.token and j.lease_until > clock_timestamp()
      order by j.id
      for update of j
    )
    update jobs j set lease_until = clock_timestamp() + make_interval(secs => ${leaseSeconds})
    from held where j.id = held.id
    returning j.lease_token`;
  return new Set(rows.map((row) => row.lease_token));
}
