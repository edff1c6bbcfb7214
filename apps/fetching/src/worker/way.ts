import type { Route } from "@keble-scraper/contract";
import { attemptMicros, type AttemptUsage, type Transport, worstAttemptMicros } from "@keble-scraper/egress";
import type { ClaimedJob } from "./claimed-job.ts";

/** A configured way out, as a worker uses it. */
export type Way = {
  readonly route: Route;
  readonly transport: Transport;
  /** The hard limit of one attempt. */
  readonly attemptMs: number;
  /** Null: the route costs nothing. Else the undiscounted price, in the route's own unit. */
  readonly priceMicros: number | null;
  /** Null means no cap. */
  readonly dailyCapMicros: number | null;
  readonly monthlyCapMicros: number | null;
  /** Whether equal session ids share an exit. */
  readonly isSticky: boolean;
};

/** The ways of one worker. A route that this deployment lacks is absent. */
export type Ways = ReadonlyMap<string, Way>;

/** The most that one attempt of this job may cost by this way, micro-USD; 0: nothing has to be reserved. */
export function worstCostMicros({ route, priceMicros, attemptMs }: Way, job: ClaimedJob): number {
  if (priceMicros === null) return 0;
  return worstAttemptMicros({ route, priceMicros, maxBodyBytes: job.maxBodyBytes, robots: job.robots, attemptMs });
}

/** What an attempt cost by what it used, micro-USD. */
export function costMicros({ route, priceMicros }: Way, usage: AttemptUsage): number {
  return priceMicros === null ? 0 : attemptMicros({ route, priceMicros, usage });
}
