import type { Tx } from "../../database.ts";

/** Notes that the supplier of a quarantined route was asked just now. False: the route is not quarantined. */
export async function markProbed(sql: Tx, route: string): Promise<boolean> {
  const rows = await sql`
    update route_quarantines set probed_at = clock_timestamp()
    where route = ${route} and (lifts_at is null or lifts_at > clock_timestamp()) returning route`;
  return rows.length > 0;
}
