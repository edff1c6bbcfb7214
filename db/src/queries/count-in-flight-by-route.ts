import type { Tx } from "../database.ts";

/** How many attempts run by each route now; a route that is absent has none. */
export async function countInFlightByRoute(sql: Tx): Promise<ReadonlyMap<string, number>> {
  const rows = await sql<{ route: string; count: number }[]>`
    select attempt_route as route, count(*)::int as count from jobs
    where lease_token is not null and lease_until > clock_timestamp()
    group by 1`;
  return new Map(rows.map((row) => [row.route, row.count]));
}
