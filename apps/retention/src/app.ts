import { createFence, createStore, StoreUnavailable } from "@keble-scraper/artifact-store";
import { createDatabase, findNamespace, hasStoredRows, isDatabaseUnready } from "@keble-scraper/db";
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
  startPatiently,
  SYSTEM_CLOCK,
} from "@keble-scraper/service";
import { createBeatLoop } from "./beat.ts";
import { createMaintenance } from "./maintenance/maintenance.ts";
import { createStoreUpkeep } from "./maintenance/store-upkeep.ts";
import { retentionRouter } from "./router.ts";
import type { RetentionSettings } from "./settings.ts";
import { createStatsReader } from "./stats/create-stats-reader.ts";

/** What a test may replace. */
export type RetentionOverrides = {
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly signals?: Signals;
};

/** Each of the three loops works one statement at a time. */
const COMMAND_CONNECTIONS = 3;
const READ_CONNECTIONS = 1;
/** A batch that takes longer is ended by the server and tried again with the next tick. */
const STATEMENT_TIMEOUT_MS = 10_000;
/** The gateway waits 10 s for the stats. */
const STATS_TIMEOUT_MS = 3_000;

/** The retention service: how the deployment is doing. */
export function createRetention(
  settings: RetentionSettings,
  overrides: Pick<RetentionOverrides, "clock"> = {},
): Container & { readonly url: string } {
  const { clock = SYSTEM_CLOCK } = overrides;
  const logger = createLogger({ name: "retention", level: settings.logLevel });
  const database = createDatabase({
    url: settings.database.url,
    applicationName: "keble-retention",
    commandConnections: READ_CONNECTIONS,
    readConnections: READ_CONNECTIONS,
    statementTimeoutMs: STATS_TIMEOUT_MS,
  });
  const { purgeRowsPerMinute: rowsPerMinute, auditDays } = settings.retention;
  const checks = [database];
  const server = createInternalServer({
    name: "retention",
    port: settings.internal.ports.retention,
    host: settings.internal.host,
    router: retentionRouter,
    context: { readStats: createStatsReader({ database, rowsPerMinute, auditDays, clock }) },
    serviceToken: settings.internal.serviceToken,
    checks,
    logger,
  });
  const container = createContainer({
    name: "retention",
    components: [database, server],
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
  const store = createStore(settings.artifacts.store);
  const away = { isAway: (error: unknown) => isDatabaseUnready(error) || error instanceof StoreUnavailable, logger };
  const fence = createFence({
    store,
    owner: settings.artifacts.namespaceOwner,
    findNamespace: () => findNamespace(database.commands),
    hasRows: () => hasStoredRows(database.commands),
  });
  const redis = { redisUrl: settings.redis.url, prefix: settings.redis.prefix, logger };
  const bell = createBell(redis);
  const hints = createHints(redis);
  const { ticks, deadlines } = createMaintenance({ settings, database, bell, hints, clock, random, signals, logger });
  const upkeep = createStoreUpkeep({ settings, database, store, fence, clock, random, signals, logger });
  const listener = createBellListener({
    ...redis,
    kind: "maintenance",
    onRing() {
      ticks.wake();
      upkeep.wake();
    },
  });
  return createContainer({
    name: "worker-maintenance",
    components: [
      database,
      bell,
      hints,
      ticks,
      deadlines,
      listener,
      // Behind what recovers: a store that is down, or slow to say whose it is, holds up its own upkeep alone.
      startPatiently(store, away),
      startPatiently(fence, away),
      upkeep,
    ],
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
