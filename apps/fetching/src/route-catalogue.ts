import {
  type EgressWish,
  ROUTES,
  ROUTE_TRANSPORTS,
  type Route,
  type RoutePrice,
  type Transport,
} from "@keble-scraper/contract";
import { canNarrow, isPaidRoute, ROUTE_PRICES } from "@keble-scraper/egress";
import type { ProxySettings, RouteMoney, RouteRate } from "@keble-scraper/service";
import type { FetchingSettings } from "./settings.ts";

/** A way out as this deployment is set up: nothing here changes while a process runs, and nothing is a secret. */
export type CatalogueEntry = {
  readonly route: Route;
  readonly transport: Transport;
  /** Null: it is configured. Else the settings that would do it, by name. */
  readonly missing: string | null;
  readonly rate: RouteRate;
  /** Null: it is free. */
  readonly price: RoutePrice | null;
  /** Null means no cap. */
  readonly caps: { readonly dayMicros: number | null; readonly monthMicros: number | null };
  readonly attemptMs: number;
  /** What of a job's egress wishes it can meet. */
  readonly narrows: readonly EgressWish[];
};

/** Every way out that the product knows, in the order of the contract. */
export type Catalogue = readonly CatalogueEntry[];

/** Reads the catalogue from the settings. DIRECT needs no configuration. */
export function createCatalogue({ routes, fetching }: Pick<FetchingSettings, "routes" | "fetching">): Catalogue {
  const attempt: Readonly<Record<Route, number>> = {
    DIRECT: fetching.attemptMs,
    DATACENTER: fetching.attemptMs,
    RESIDENTIAL: fetching.attemptMs,
    UNLOCKER: fetching.unlockerAttemptMs,
    CLOUDFLARE_RENDER: fetching.renderAttemptMs,
    LOCAL_RENDER: fetching.renderAttemptMs,
  };
  const missing: Readonly<Record<Route, string | null>> = {
    DIRECT: null,
    DATACENTER: routes.DATACENTER.proxy === null ? "SCRAPER_DATACENTER_PROXY_URL" : null,
    RESIDENTIAL: routes.RESIDENTIAL.proxy === null ? "SCRAPER_RESIDENTIAL_PROXY_URL" : null,
    UNLOCKER: routes.UNLOCKER.api === null ? "SCRAPER_UNLOCKER_API_KEY and SCRAPER_UNLOCKER_ZONE" : null,
    CLOUDFLARE_RENDER:
      routes.CLOUDFLARE_RENDER.api === null ? "SCRAPER_CLOUDFLARE_ACCOUNT_ID and SCRAPER_CLOUDFLARE_API_TOKEN" : null,
    LOCAL_RENDER: routes.LOCAL_RENDER.browser === null ? "SCRAPER_LOCAL_RENDER" : null,
  };
  const narrows: Readonly<Record<Route, readonly EgressWish[]>> = {
    DIRECT: [],
    DATACENTER: proxyNarrows(routes.DATACENTER.proxy),
    RESIDENTIAL: proxyNarrows(routes.RESIDENTIAL.proxy),
    // Its API takes a country; it knows no sessions.
    UNLOCKER: ["country"],
    CLOUDFLARE_RENDER: [],
    LOCAL_RENDER: [],
  };
  const money: Readonly<Record<Route, RouteMoney>> = { ...routes, DIRECT: NO_MONEY, LOCAL_RENDER: NO_MONEY };
  return ROUTES.map((route) => {
    const { requestsPerSecond, concurrency } = routes[route];
    const { priceMicros, dailyCapMicros, monthlyCapMicros } = money[route];
    return {
      route,
      transport: ROUTE_TRANSPORTS[route],
      missing: missing[route],
      rate: { requestsPerSecond, concurrency },
      price: isPaidRoute(route) ? priceOf(route, priceMicros) : null,
      caps: { dayMicros: dailyCapMicros, monthMicros: monthlyCapMicros },
      attemptMs: attempt[route],
      narrows: narrows[route],
    };
  });
}

const NO_MONEY: RouteMoney = { priceMicros: null, dailyCapMicros: null, monthlyCapMicros: null };

/** What the proxy's rules have words for, unless its user name pins the exit already. */
function proxyNarrows(proxy: ProxySettings | null): readonly EgressWish[] {
  if (proxy === null) return [];
  const { country, session } = canNarrow(proxy);
  return [...(country ? (["country"] as const) : []), ...(session ? (["stickyKey"] as const) : [])];
}

/** The operator's own price, or the list's with its evidence. */
function priceOf(route: Route, ownMicros: number | null): RoutePrice {
  const { unit, micros, source, asOf, note } = ROUTE_PRICES[route];
  if (ownMicros !== null) return { unit, micros: ownMicros, source: `SCRAPER_${route}_PRICE_MICROS`, asOf: null };
  return { unit, micros, source: note === "" ? source : `${source} (${note})`, asOf };
}
