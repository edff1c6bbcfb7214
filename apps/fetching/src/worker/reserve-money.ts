import { isDatabaseOutage, type Sql } from "@keble-scraper/db";
import { reserveCost } from "@keble-scraper/db/commands/fetching";
import type { RunControl } from "@keble-scraper/service";
import type { ClaimedJob } from "./claimed-job.ts";
import { type Way, worstCostMicros } from "./way.ts";

/**
 * FREE: nothing has to be reserved. CAP_EXCEEDED: settled spend has filled a cap. CAPACITY: what is out with running
 * attempts fills it, for now. STALE: the lease is no longer ours.
 */
export type Money = "FREE" | "RESERVED" | "CAP_EXCEEDED" | "CAPACITY" | "STALE";

/** Reserves the most that an attempt may cost, before anything of it is sent. */
export type ReserveMoney = (job: ClaimedJob, way: Way, control: RunControl) => Promise<Money>;

/** Between two tries while the database can't be reached: nothing was sent, so waiting harms nothing. */
const RETRY_MS = 250;

/** Caps are settings: null means none. While the database is away the reservation waits for as long as its lease is trusted. */
export function createReserveMoney(
  sql: Sql,
  callerCaps: { readonly dailyCapMicros: number | null; readonly monthlyCapMicros: number | null },
): ReserveMoney {
  return async (job, way, control) => {
    const micros = worstCostMicros(way, job);
    if (micros === 0) return "FREE";
    while (control.isTrusted() && !control.signal.aborted) {
      try {
        return await reserveCost(sql, {
          id: job.id,
          token: job.token,
          route: way.route,
          micros,
          caps: {
            routeDay: way.dailyCapMicros,
            routeMonth: way.monthlyCapMicros,
            callerDay: callerCaps.dailyCapMicros,
            callerMonth: callerCaps.monthlyCapMicros,
          },
        });
      } catch (error) {
        if (!isDatabaseOutage(error)) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
    return "STALE";
  };
}
