import type { Route, RouteState, SubmitJob } from "@keble-scraper/contract";
import { worstAttemptMicros } from "@keble-scraper/egress";

/** The most that one attempt of a job by a route may cost, micro-USD: what will be reserved for it. 0 on free routes. */
export function worstJobAttemptMicros(job: SubmitJob, route: Route, routes: readonly RouteState[]): number {
  const state = routes.find((known) => known.route === route);
  if (state === undefined) return 0;
  const { priceMicros, attemptMs } = state;
  return worstAttemptMicros({
    route,
    priceMicros,
    maxBodyBytes: job.limits.maxBodyBytes,
    robots: job.robots,
    attemptMs,
  });
}

/** The most that all attempts of a job together may cost: each by the dearest route it lists, within its own cap. */
export function worstJobMicros(job: SubmitJob, routes: readonly RouteState[]): number {
  const dearest = Math.max(...job.routes.map((route) => worstJobAttemptMicros(job, route, routes)));
  return Math.min(job.limits.costCapMicros, job.limits.attemptBudget * dearest);
}
