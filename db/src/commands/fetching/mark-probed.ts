import type { Tx } from "../../database.ts";

/**
 * Takes the turn to ask the supplier of a quarantined route, and notes it. False: the route is not quarantined, not for
 * `reason` (absent: any), or its supplier was asked within the last `apartMs` (absent: 0).
 */
export async function markProbed(
  sql: Tx,
  route: string,
  turn: { readonly reason?: string; readonly apartMs?: number } = {},
): Promise<boolean> {
  const { reason = null, apartMs = 0 } = turn;
  const rows = await sql`
    update route_quarantines set probed_at = clock_timestamp()
    where route = ${route} and (lifts_at is null or lifts_at > clock_timestamp())
      and reason = coalesce(${reason}::text, reason)
      and (probed_at is null or probed_at <= clock_timestamp() - make_interval(secs => ${apartMs / 1_000}::float8))
    returning route`;
  return rows.length > 0;
}
