import { readFileSync } from "node:fs";
import type { Route } from "@keble-scraper/contract";
import {
  allowedTargetsOf,
  canNarrow,
  createCloudflareRenderTransport,
  createDirectTransport,
  createProxyTransport,
  createResolver,
  createUnlockerTransport,
  type EgressLimits,
  ROUTE_PRICES,
  type Transport,
} from "@keble-scraper/egress";
import type { ProxySettings, RouteMoney } from "@keble-scraper/service";
import type { FetchingSettings } from "../settings.ts";
import type { Way, Ways } from "./way.ts";

/** The resolver, the policy and the limits that all ways of a worker share. */
export function createEgressParts(settings: FetchingSettings) {
  const allowedTargets = allowedTargetsOf(settings.fetching.allowedTargets);
  const limits: Partial<EgressLimits> = {
    connectTimeoutMs: settings.fetching.connectTimeoutMs,
    responseTimeoutMs: settings.fetching.responseTimeoutMs,
    bodyIdleTimeoutMs: settings.fetching.bodyIdleTimeoutMs,
  };
  return {
    resolver: createResolver({ systemNames: allowedTargets.names }),
    policy: { allowedTargets },
    limits,
    userAgent: settings.fetching.userAgent,
  };
}

/** The configured ways of a fetch worker. DIRECT needs no configuration. */
export function openHttpWays(settings: FetchingSettings): Ways {
  const { routes, fetching } = settings;
  const parts = createEgressParts(settings);
  const ways: Way[] = [];
  const { developmentEgress } = fetching;
  const direct = createDirectTransport({ ...parts, ...(developmentEgress === null ? {} : { developmentEgress }) });
  ways.push(freeWay("DIRECT", direct, fetching.attemptMs));
  for (const route of ["DATACENTER", "RESIDENTIAL"] as const) {
    const { proxy } = routes[route];
    if (proxy === null) continue;
    const transport = createProxyTransport({
      ...parts,
      route,
      proxy: { ...proxy, authorities: readAuthorities(proxy) },
    });
    ways.push({ ...paidWay(route, transport, fetching.attemptMs, routes[route]), isSticky: canNarrow(proxy).session });
  }
  const { api } = routes.UNLOCKER;
  if (api !== null) {
    const transport = createUnlockerTransport({ ...parts, api });
    ways.push(paidWay("UNLOCKER", transport, fetching.unlockerAttemptMs, routes.UNLOCKER));
  }
  return byRoute(ways);
}

/** The configured ways of a render worker; `localRender` is null where it is off. */
export function openRenderWays(settings: FetchingSettings, localRender: Transport | null): Ways {
  const { routes, fetching } = settings;
  const ways: Way[] = [];
  if (localRender !== null) ways.push(freeWay("LOCAL_RENDER", localRender, fetching.renderAttemptMs));
  const { api } = routes.CLOUDFLARE_RENDER;
  if (api !== null) {
    const transport = createCloudflareRenderTransport({ ...createEgressParts(settings), api });
    ways.push(paidWay("CLOUDFLARE_RENDER", transport, fetching.renderAttemptMs, routes.CLOUDFLARE_RENDER));
  }
  return byRoute(ways);
}

function byRoute(ways: readonly Way[]): Ways {
  return new Map(ways.map((way) => [way.route, way]));
}

function freeWay(route: Route, transport: Transport, attemptMs: number): Way {
  const free = { priceMicros: null, dailyCapMicros: null, monthlyCapMicros: null, isSticky: false };
  return { route, transport, attemptMs, ...free };
}

function paidWay(route: Route, transport: Transport, attemptMs: number, money: RouteMoney): Way {
  const { dailyCapMicros, monthlyCapMicros } = money;
  const priceMicros = money.priceMicros ?? ROUTE_PRICES[route].micros;
  return { route, transport, attemptMs, priceMicros, dailyCapMicros, monthlyCapMicros, isSticky: false };
}

/** Read once, at start: a file that is not there ends the start with its name. */
function readAuthorities({ caFile }: ProxySettings): readonly string[] {
  return caFile === null ? [] : [readFileSync(caFile, "utf8")];
}
