import type { Tx } from "../../database.ts";

/** A delivery that a worker holds. */
export type HeldDelivery = { readonly id: string; readonly token: string };

/** Renews exactly the leases named and returns the tokens that are still held: what is missing was lost. */
export async function renewDeliveries(
  sql: Tx,
  leases: readonly HeldDelivery[],
  leaseSeconds: number,
): Promise<ReadonlySet<string>> {
  if (leases.length === 0) return new Set();
  const rows = await sql<{ lease_token: string }[]>`
    with held as materialized (
      select d.id from callback_deliveries d
      join unnest(${leases.map((lease) => lease.id)}::uuid[], ${leases.map((lease) => lease.token)}::uuid[]) as l (id, token)
        on d.id = l.id
      where d.lease_token = l.token and d.lease_until > clock_timestamp()
      order by d.id
      for update of d
    )
    update callback_deliveries d set lease_until = clock_timestamp() + make_interval(secs => ${leaseSeconds})
    from held where d.id = held.id
    returning d.lease_token`;
  return new Set(rows.map((row) => row.lease_token));
}
