import type { Route } from "@keble-scraper/contract";
import type { Tx } from "../../database.ts";
import { type DeferralCause, listRouteDeferrals } from "../../steps/deferral.ts";

/**
 * Makes jobs that wait for a host or a route due now, `limit` at the most, and returns how many: as many as `limit` means
 * that there may be more. A job that waits for several routes is resumed by each of them. Waits for no lock.
 */
export async function resumeDeferredJobs(
  sql: Tx,
  options: { readonly deferredBy: DeferralCause; readonly limit: number },
): Promise<number> {
  const { deferredBy, limit } = options;
  if (deferredBy.startsWith("host:")) return resumeJobsDeferredBy(sql, [deferredBy], limit);
  const route = deferredBy.slice("route:".length);
  return resumeJobsDeferredBy(
    sql,
    listRouteDeferrals((routes) => routes.includes(route as Route)),
    limit,
  );
}

/** The same by the values of `deferred_by` as they are stored. */
export async function resumeJobsDeferredBy(sql: Tx, values: readonly string[], limit: number): Promise<number> {
  const rows = await sql`
    with waiting as materialized (
      select w.id from unnest(${[...values]}::text[]) as v (deferred_by)
      cross join lateral (
        select j.id from jobs j where j.deferred_by = v.deferred_by
        limit ${limit}
        for update skip locked
      ) w
      limit ${limit}
    )
    update jobs j set due_at = least(j.due_at, ceil_ms(clock_timestamp())), deferred_by = null
    from waiting w where j.id = w.id
    returning j.id`;
  return rows.length;
}
