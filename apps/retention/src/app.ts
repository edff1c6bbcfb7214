import { createDatabase } from "@keble-scraper/db";
import {
  type Clock,
  type Container,
  createBell,
  createBellListener,
  createContainer,
  createHints,
  createInternalServer,
  createLogger,
  NO_SIGNALS,
  type Signals,
  SYSTEM_CLOCK,
} from "@keble-scraper/service";
import { createBeatLoop } from "./beat.ts";
import { createMaintenance } from "./maintenance/maintenance.ts";
import { retentionRouter } from "./router.ts";
import type { RetentionSettings } from "./settings.ts";

/** What a test may replace. */
export type RetentionOverrides = {
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly signals?: Signals;
};

/** Both loops work one statement at a time. */
const COMMAND_CONNECTIONS = 2;
const READ_CONNECTIONS = 1;
/** A batch that takes longer is ended by the server and tried again with the next tick. */
const STATEMENT_TIMEOUT_MS = 10_000;

/** The retention service: for now its health, since nobody asks anything of it. */
export function createRetention(settings: RetentionSettings): Container {
  const logger = createLogger({ name: "retention", level: settings.logLevel });
  const server = createInternalServer({
    name: "retention",
    port: settings.internal.ports.retention,
    host: settings.internal.host,
    router: retentionRouter,
    context: {},
    serviceToken: settings.internal.serviceToken,
    checks: [],
    logger,
  });
  return createContainer({
    name: "retention",
    components: [server],
    logger,
    drainGraceMs: settings.timings.drainGraceMs,
  });
}

/** The maintenance worker: recovers, expires, closes and announces by itself; bells only make it sooner. */
export function createMaintenanceWorker(settings: RetentionSettings, overrides: RetentionOverrides = {}): Container {
  const { clock = SYSTEM_CLOCK, random = Math.random, signals = NO_SIGNALS } = overrides;
  const logger = createLogger({ name: "worker-maintenance", level: settings.logLevel });
  const database = createDatabase({
    url: settings.database.url,
    applicationName: "keble-worker-maintenance",
    commandConnections: COMMAND_CONNECTIONS,
    readConnections: READ_CONNECTIONS,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  const redis = { redisUrl: settings.redis.url, prefix: settings.redis.prefix, logger };
  const bell = createBell(redis);
  const hints = createHints(redis);
  const { ticks, deadlines } = createMaintenance({ settings, database, bell, hints, clock, random, signals, logger });
  const listener = createBellListener({ ...redis, kind: "maintenance", onRing: () => ticks.wake() });
  return createContainer({
    name: "worker-maintenance",
    components: [database, bell, hints, ticks, deadlines, listener],
    checks: [database, bell.check, listener.check],
    logger,
    drainGraceMs: settings.timings.drainGraceMs,
  });
}

/** Beat: rings maintenance at its interval. */
export function createBeat(settings: RetentionSettings, overrides: RetentionOverrides = {}): Container {
  const { clock = SYSTEM_CLOCK, signals = NO_SIGNALS } = overrides;
  const logger = createLogger({ name: "beat", level: settings.logLevel });
  const bell = createBell({ redisUrl: settings.redis.url, prefix: settings.redis.prefix, logger });
  const loop = createBeatLoop({ bell, intervalMs: settings.timings.maintenanceMs, clock, signals, logger });
  return createContainer({
    name: "beat",
    components: [bell, loop],
    checks: [bell.check],
    logger,
    drainGraceMs: settings.timings.drainGraceMs,
  });
}
