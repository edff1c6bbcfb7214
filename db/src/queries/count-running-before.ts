import type { Tx } from "../database.ts";

/**
 * How many jobs of a host or route run whose attempt began before that of this lease: slots, while Redis is away. A lease
 * that is not there has everybody before it.
 */
export async function countRunningBefore(
  sql: Tx,
  slot: { readonly token: string; readonly by: "HOST" | "ROUTE"; readonly key: string },
): Promise<number> {
  const column = slot.by === "HOST" ? sql`r.host_key` : sql`r.attempt_route`;
  const [row] = await sql<[{ count: number }]>`
    with own as materialized (
      select j.attempt_started_at, j.lease_token from jobs j where j.lease_token = ${slot.token} and j.lease_until > clock_timestamp()
    )
    select count(*)::int as count from jobs r
    where r.lease_token is not null and r.lease_until > clock_timestamp() and ${column} = ${slot.key}
      and ((select lease_token from own) is null
           or (r.attempt_started_at, r.lease_token) < ((select attempt_started_at from own), (select lease_token from own)))`;
  return row.count;
}
