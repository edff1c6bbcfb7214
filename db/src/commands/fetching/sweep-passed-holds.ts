import type { Route } from "@keble-scraper/contract";
import type { Tx } from "../../database.ts";
import { listRouteDeferrals } from "../../steps/deferral.ts";
import { resumeJobsDeferredBy } from "./resume-deferred-jobs.ts";

/** How long a row that means nothing any more is kept: a worker may hold it against what it saw a moment ago. */
const KEPT_SECONDS = 60;
/** A clock this long past is as good as none. */
const CLOCK_KEPT_MS = 600_000;

/** What a sweep did; any of them as many as its limit means that there may be more. */
export type Sweep = {
  readonly holds: number;
  readonly clocks: number;
  readonly quarantines: number;
  readonly resumed: number;
};

/**
 * Deletes holds, admission clocks and quarantines that have passed, and makes jobs due that wait for a route which is
 * open by now, each `limit` at the most. Waits for no lock.
 */
export async function sweepPassedHolds(sql: Tx, options: { readonly limit: number }): Promise<Sweep> {
  const { limit } = options;
  const holds = await sql`
    delete from host_holds where host_key in (
      select host_key from host_holds where held_until < statement_timestamp() - make_interval(secs => ${KEPT_SECONDS})
      order by held_until limit ${limit} for update skip locked)`;
  const clocks = await sql`
    delete from admission_clocks where key in (
      select key from admission_clocks where next_at_ms < extract(epoch from statement_timestamp())::float8 * 1000 - ${CLOCK_KEPT_MS}
      limit ${limit} for update skip locked)`;
  const quarantines = await sql`
    delete from route_quarantines where route in (
      select route from route_quarantines where lifts_at < statement_timestamp() - make_interval(secs => ${KEPT_SECONDS})
      limit ${limit} for update skip locked)`;
  return {
    holds: holds.count,
    clocks: clocks.count,
    quarantines: quarantines.count,
    resumed: await resumeOpen(sql, limit),
  };
}

/** Jobs that wait for a set of routes of which one is not quarantined: it passed, or its release was cut off. */
async function resumeOpen(sql: Tx, limit: number): Promise<number> {
  const rows = await sql<{ route: Route }[]>`
    select route from route_quarantines where lifts_at is null or lifts_at > statement_timestamp()`;
  const closed = new Set(rows.map((row) => row.route));
  return resumeJobsDeferredBy(
    sql,
    listRouteDeferrals((routes) => routes.some((route) => !closed.has(route))),
    limit,
  );
}
