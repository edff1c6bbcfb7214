import { ROUTES, type Route } from "@keble-scraper/contract";

/** A way out and whether this deployment has it; `reason` says why not. */
export type RouteState = { readonly route: Route; readonly available: boolean; readonly reason?: string };

/** The routes of this deployment. DIRECT needs no configuration. */
export function listRouteStates(): RouteState[] {
  return ROUTES.map((route) =>
    route === "DIRECT" ? { route, available: true } : { route, available: false, reason: "not configured" },
  );
}
