import { ROUTES, type Route } from "@keble-scraper/contract";

/** What a job waits for: `host:<key>`, a host that is held, or `route:<route>`, a route that is quarantined. */
export type DeferralCause = `host:${string}` | `route:${Route}`;

/** Every value of `jobs.deferred_by` that `isWanted` picks, by the routes that it names. There are 63 in all. */
export function listRouteDeferrals(isWanted: (routes: readonly Route[]) => boolean): string[] {
  const sets = ROUTES.reduce<Route[][]>(
    (smaller, route) => [...smaller, ...smaller.map((set) => [...set, route])],
    [[]],
  );
  return sets.filter((set) => set.length > 0 && isWanted(set)).map(deferredByRoutes);
}

/** What `jobs.deferred_by` says of a job that waits for any of these routes: sorted, so that equal sets are equal texts. */
function deferredByRoutes(routes: readonly Route[]): string {
  return `route:${routes.toSorted().join(",")}`;
}
