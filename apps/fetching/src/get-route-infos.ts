import { type RouteInfo, type RouteQuarantine, formatTime } from "@keble-scraper/contract";
import {
  type QuarantineRow,
  type RouteSpendRow,
  countInFlightByRoute,
  listRouteSpend,
  listQuarantines,
} from "@keble-scraper/db";
import type { FetchingContext } from "./context.ts";
import type { CatalogueEntry } from "./route-catalogue.ts";
import { closedReason, healthOf, findQuarantine } from "./route-states.ts";

/** Every route as operators see it, as the database says now. */
export async function getRouteInfos({ database, catalogue }: FetchingContext): Promise<RouteInfo[]> {
  const [quarantines, spend, inFlight] = await Promise.all([
    listQuarantines(database.commands),
    listRouteSpend(database.commands),
    countInFlightByRoute(database.commands),
  ]);
  return catalogue.map((entry) =>
    toRouteInfo(entry, {
      quarantine: findQuarantine(entry, quarantines),
      spend: spend.filter(({ route }) => route === entry.route),
      inFlight: inFlight.get(entry.route) ?? 0,
    }),
  );
}

/** One route, from how it is set up and what the database knows of it. */
export function toRouteInfo(
  entry: CatalogueEntry,
  state: {
    readonly quarantine: QuarantineRow | null;
    readonly spend: readonly RouteSpendRow[];
    readonly inFlight: number;
  },
): RouteInfo {
  const reason = closedReason(entry, state.quarantine);
  return {
    route: entry.route,
    transport: entry.transport,
    available: reason === null,
    ...(reason === null ? {} : { reason: entry.missing === null ? reason : `${reason}: set ${entry.missing}` }),
    health: healthOf(entry, state.quarantine),
    quarantine: state.quarantine === null ? null : toQuarantine(state.quarantine),
    requestsPerSecond: entry.rate.requestsPerSecond,
    concurrency: entry.rate.concurrency,
    inFlight: state.inFlight,
    price: entry.price,
    spend: entry.price === null ? null : toSpend(entry, state.spend),
  };
}

function toQuarantine(row: QuarantineRow): RouteQuarantine {
  return {
    reason: row.reason,
    nativeCode: row.nativeCode,
    note: row.note,
    by: row.actor,
    since: formatTime(row.quarantinedAt),
    until: row.liftsAt === null ? null : formatTime(row.liftsAt),
  };
}

/** A period without a row has had no reservation yet. */
function toSpend({ caps }: CatalogueEntry, rows: readonly RouteSpendRow[]): RouteInfo["spend"] {
  const of = (period: RouteSpendRow["period"]) => rows.find((row) => row.period === period);
  const amounts = (row: RouteSpendRow | undefined, capMicros: number | null) => ({
    settledMicros: row?.settledMicros ?? 0,
    reservedMicros: row?.reservedMicros ?? 0,
    capMicros,
  });
  return { day: amounts(of("DAY"), caps.dayMicros), month: amounts(of("MONTH"), caps.monthMicros) };
}
