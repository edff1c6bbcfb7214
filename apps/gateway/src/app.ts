import { createDatabase } from "@keble-scraper/db";
import {
  type Clock,
  type Component,
  type Container,
  createContainer,
  createLogger,
  type Logger,
  SYSTEM_CLOCK,
} from "@keble-scraper/service";
import { createAuditLog } from "./audit/audit-log.ts";
import { createHttpApp } from "./http/http-app.ts";
import { createPublicServer } from "./http/public-server.ts";
import { createKeyStore } from "./keys/key-store.ts";
import { createChecks, createReadiness } from "./readiness.ts";
import { openServices } from "./services.ts";
import type { GatewaySettings } from "./settings.ts";

/** Keys are remembered for seconds, so few connections serve many callers. */
const COMMAND_CONNECTIONS = 4;
const READ_CONNECTIONS = 2;
const STATEMENT_TIMEOUT_MS = 5_000;

/** The gateway. `url` is where it listens once it has started. */
export type Gateway = Container & { readonly url: string };

/** Puts the public door together. Nothing is opened before `start`. */
export function createGateway(
  settings: GatewaySettings,
  overrides: { readonly clock?: Clock; readonly logger?: Logger } = {},
): Gateway {
  const clock = overrides.clock ?? SYSTEM_CLOCK;
  const logger = overrides.logger ?? createLogger({ name: "gateway", level: settings.logLevel });
  let isStopping = false;

  const database = createDatabase({
    url: settings.database.url,
    applicationName: "keble-scraper-gateway",
    commandConnections: COMMAND_CONNECTIONS,
    readConnections: READ_CONNECTIONS,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  const services = openServices(settings.internal);
  const links: Component = { name: "service links", start: () => Promise.resolve(), stop: () => services.close() };

  const checks = createChecks(settings.internal, database);
  const app = createHttpApp({
    services,
    keys: createKeyStore(database, { now: () => clock.monotonicMs(), auditDays: settings.retention.auditDays }),
    audit: createAuditLog(database),
    clock,
    logger,
    readiness: createReadiness(checks, clock),
    isStopping: () => isStopping,
  });
  const server = createPublicServer({
    ...settings.gateway,
    fetch: app.fetch,
    stopping: () => {
      isStopping = true;
      services.endWaits();
    },
    logger,
  });

  const container = createContainer({
    name: "gateway",
    components: [database, links, server],
    checks,
    logger,
    drainGraceMs: settings.timings.drainGraceMs,
  });
  return {
    ...container,
    get url() {
      return server.url;
    },
  };
}
