import { ROUTE_TRANSPORTS, ROUTES, type Route } from "@keble-scraper/contract";
import { createDatabase, listQuarantines } from "@keble-scraper/db";
import { markProbed, quarantineRoute, releaseRoute } from "@keble-scraper/db/commands/fetching";
import {
  type Clock,
  type Container,
  createBell,
  createContainer,
  createLogger,
  createRepeater,
  NO_SIGNALS,
  type Signals,
  SYSTEM_CLOCK,
} from "@keble-scraper/service";
import { quarantineMs } from "../quarantine-ms.ts";
import { createRouteCheck } from "./check-routes.ts";
import { createSupplierProbes } from "./create-supplier-probes.ts";
import type { ProxyHealthSettings } from "./proxy-health-settings.ts";
import type { SupplierProbes } from "./supplier-probe.ts";

/** What a test may replace. */
export type ProxyHealthOverrides = {
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly signals?: Signals;
  readonly probes?: SupplierProbes;
  readonly probeTimeoutMs?: number;
};

/** Routes are checked at the same time; each works one statement at a time. */
const COMMAND_CONNECTIONS = 2;
const STATEMENT_TIMEOUT_MS = 10_000;
/** A supplier that takes longer to say that it is well, is not. */
const PROBE_TIMEOUT_MS = 30_000;
/** Two workers take turns: a route is not asked about again within this part of the interval. */
const TURN = 0.8;
const BY = { actor: "system:proxy-health", requestId: null } as const;

/**
 * The proxy-health worker: asks the suppliers of quarantined routes at its interval whether they serve us again, and lifts
 * the quarantines that are over. It holds nothing that another one of it could miss: two are harmless, none costs time.
 */
export function createProxyHealthWorker(
  settings: ProxyHealthSettings,
  overrides: ProxyHealthOverrides = {},
): Container {
  const { clock = SYSTEM_CLOCK, random = Math.random, signals = NO_SIGNALS } = overrides;
  const { intervalMs } = settings.proxyHealth;
  const retentionDays = settings.retention.auditDays;
  const logger = createLogger({ name: "worker-proxy-health", level: settings.logLevel });
  const database = createDatabase({
    url: settings.database.url,
    applicationName: "keble-worker-proxy-health",
    commandConnections: COMMAND_CONNECTIONS,
    readConnections: 1,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  const sql = database.commands;
  const bell = createBell({ redisUrl: settings.redis.url, prefix: settings.redis.prefix, logger });

  const check = createRouteCheck({
    probes: overrides.probes ?? createSupplierProbes(settings),
    async list() {
      const standing = await listQuarantines(sql);
      return standing.flatMap(({ route, reason, liftsAt }) => (isRoute(route) ? [{ route, reason, liftsAt }] : []));
    },
    takeTurn: ({ route, reason }) => markProbed(sql, route, { reason, apartMs: intervalMs * TURN }),
    async prolong({ route }, advice, nativeCode) {
      const { reason } = advice;
      const forMs = quarantineMs(advice, clock.wallMs());
      await quarantineRoute(sql, { route, reason, nativeCode, note: null, forMs, by: BY, retentionDays });
    },
    async lift({ route, reason }) {
      const isLifted = await releaseRoute(sql, { route, reason, by: BY, retentionDays });
      const transport = ROUTE_TRANSPORTS[route];
      if (isLifted) bell.ring(transport === "HTTP" ? "fetch" : "render", { transport });
      return isLifted;
    },
    // What ends before the question after the next would be asked must not end unasked.
    isEndingSoon: ({ liftsAt }) => liftsAt !== null && liftsAt.getTime() - clock.wallMs() < 2 * intervalMs,
    probeTimeoutMs: overrides.probeTimeoutMs ?? PROBE_TIMEOUT_MS,
    logger,
  });
  const rounds = createRepeater({
    name: "proxy-health",
    async run(signal) {
      await check(signal);
      return intervalMs * (0.9 + random() * 0.2);
    },
    retryMs: intervalMs,
    clock,
    signals,
    logger,
  });
  return createContainer({
    name: "worker-proxy-health",
    components: [database, bell, rounds],
    checks: [database, bell.check],
    logger,
    drainGraceMs: settings.timings.drainGraceMs,
  });
}

/** A row of a newer version may name a route that this one does not know. */
function isRoute(text: string): text is Route {
  return (ROUTES as readonly string[]).includes(text);
}
