import { ROUTE_TRANSPORTS } from "@keble-scraper/contract";
import { createDatabase } from "@keble-scraper/db";
import {
  type Container,
  createBell,
  createContainer,
  createInternalServer,
  createLogger,
} from "@keble-scraper/service";
import type { FetchingContext } from "./context.ts";
import { createCatalogue } from "./route-catalogue.ts";
import { fetchingRouter } from "./router.ts";
import type { FetchingSettings } from "./settings.ts";

export { createFetchWorker } from "./worker/fetch-worker.ts";
export { createProxyHealthWorker, type ProxyHealthOverrides } from "./proxy-health/proxy-health-worker.ts";
export type { RouteWorkerOverrides } from "./worker/route-worker.ts";

/** Operators ask seldom; each intake asks for the routes once a second at most. */
const COMMAND_CONNECTIONS = 4;
const READ_CONNECTIONS = 2;
const STATEMENT_TIMEOUT_MS = 8_000;

/** The fetching service: what other services ask of the engine. The work itself is done by its workers. */
export function createFetching(settings: FetchingSettings): Container {
  const logger = createLogger({ name: "fetching", level: settings.logLevel });
  const database = createDatabase({
    url: settings.database.url,
    applicationName: "keble-fetching",
    commandConnections: COMMAND_CONNECTIONS,
    readConnections: READ_CONNECTIONS,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  const bell = createBell({ redisUrl: settings.redis.url, prefix: settings.redis.prefix, logger });
  const context: FetchingContext = {
    database,
    catalogue: createCatalogue(settings),
    callerCaps: { dayMicros: settings.callers.dailyCapMicros, monthMicros: settings.callers.monthlyCapMicros },
    auditDays: settings.retention.auditDays,
    wake: (route) => bell.ring(ROUTE_TRANSPORTS[route] === "RENDER" ? "render" : "fetch", {}),
  };
  const checks = [database, bell.check];
  const server = createInternalServer({
    name: "fetching",
    port: settings.internal.ports.fetching,
    host: settings.internal.host,
    router: fetchingRouter,
    context,
    serviceToken: settings.internal.serviceToken,
    checks,
    logger,
  });
  return createContainer({
    name: "fetching",
    components: [database, bell, server],
    checks,
    logger,
    drainGraceMs: settings.timings.drainGraceMs,
  });
}
