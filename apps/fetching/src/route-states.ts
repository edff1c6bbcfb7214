import { ROUTES, type RouteState } from "@keble-scraper/contract";

/** The routes of this deployment. DIRECT needs no configuration. */
export function listRouteStates(): RouteState[] {
  return ROUTES.map((route) =>
    route === "DIRECT" ? { route, available: true } : { route, available: false, reason: "not configured" },
  );
}
