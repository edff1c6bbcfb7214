import { type RouteState, formatTime } from "@keble-scraper/contract";
import type { QuarantineRow } from "@keble-scraper/db";
import type { Catalogue, CatalogueEntry } from "./route-catalogue.ts";

/** What accepting a job depends on, for each route. */
export function toRouteStates(catalogue: Catalogue, quarantines: readonly QuarantineRow[]): RouteState[] {
  return catalogue.map((entry) => {
    const quarantine = findQuarantine(entry, quarantines);
    const reason = closedReason(entry, quarantine);
    return {
      route: entry.route,
      health: healthOf(entry, quarantine),
      ...(reason === null ? {} : { reason }),
      priceMicros: entry.price?.micros ?? 0,
      attemptMs: entry.attemptMs,
      narrows: [...entry.narrows],
    };
  });
}

/** The quarantine of a route; null: there is none. */
export function findQuarantine({ route }: CatalogueEntry, quarantines: readonly QuarantineRow[]): QuarantineRow | null {
  return quarantines.find((row) => row.route === route) ?? null;
}

/** A route that is not configured is just that, whether or not somebody quarantined it. */
export function healthOf(entry: CatalogueEntry, quarantine: QuarantineRow | null): RouteState["health"] {
  if (entry.missing !== null) return "NOT_CONFIGURED";
  return quarantine === null ? "HEALTHY" : "QUARANTINED";
}

/** Why no job leaves by a route now, in words for callers; null: jobs do. */
export function closedReason(entry: CatalogueEntry, quarantine: QuarantineRow | null): string | null {
  if (entry.missing !== null) return "not configured";
  if (quarantine === null) return null;
  const { liftsAt } = quarantine;
  return liftsAt === null ? "quarantined until it is released" : `quarantined until ${formatTime(liftsAt)}`;
}
