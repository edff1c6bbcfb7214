import { countQueuedJobs, createDatabase } from "@keble-scraper/db";
import type { FetchingRouter } from "@keble-scraper/fetching/router";
import { allowedTargetsOf } from "@keble-scraper/egress";
import {
  type Container,
  HINT_CHANNELS,
  createBell,
  createContainer,
  createEndedAnnouncer,
  createHints,
  createInternalClient,
  createInternalServer,
  createLogger,
} from "@keble-scraper/service";
import type { IntakeContext } from "./context.ts";
import { createJobWaits } from "./job-waits.ts";
import { createQueueMeter } from "./queue-meter.ts";
import { createRouteCatalogue } from "./route-catalogue.ts";
import { intakeRouter } from "./router.ts";
import type { IntakeSettings } from "./settings.ts";

/** A waiting submit holds no connection, so few serve many; a batch of 1,000 takes tens of milliseconds. */
const COMMAND_CONNECTIONS = 8;
const READ_CONNECTIONS = 8;
const STATEMENT_TIMEOUT_MS = 5_000;
const ASK_TIMEOUT_MS = 2_000;

/** The intake service: accepts, reads, waits for and cancels jobs. */
export function createIntake(settings: IntakeSettings): Container {
  const logger = createLogger({ name: "intake", level: settings.logLevel });
  const database = createDatabase({
    url: settings.database.url,
    applicationName: "keble-intake",
    commandConnections: COMMAND_CONNECTIONS,
    readConnections: READ_CONNECTIONS,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  const redis = { redisUrl: settings.redis.url, prefix: settings.redis.prefix, logger };
  const bell = createBell(redis);
  const hints = createHints(redis);
  const fetching = createInternalClient<FetchingRouter>({
    url: settings.internal.urls.fetching,
    serviceToken: settings.internal.serviceToken,
    timeoutMs: ASK_TIMEOUT_MS,
    part: "fetching",
  });
  const waits = createJobWaits();
  hints.subscribe(HINT_CHANNELS.jobsEnded, (ids) => waits.wake(ids));
  const monotonicMs = () => performance.now();
  const context: IntakeContext = {
    database,
    waits,
    routes: createRouteCatalogue({ ask: () => fetching.client.listRoutes.query(), monotonicMs }),
    queue: createQueueMeter({
      queuedMax: settings.callers.queuedMax,
      count: (callerId, upTo) => countQueuedJobs(database.commands, callerId, upTo),
      monotonicMs,
    }),
    allowedTargets: allowedTargetsOf(settings.fetching.allowedTargets),
    bodyBytesMax: settings.fetching.bodyBytesMax,
    jobRetentionMs: settings.retention.jobMs,
    auditDays: settings.retention.auditDays,
    ring: (payload) => bell.ring(payload.transport === "RENDER" ? "render" : "fetch", payload),
    announceEnded: createEndedAnnouncer({ hints, bell }),
    announceCancelled: (ids) => hints.publish(HINT_CHANNELS.jobsCancelled, ids),
  };
  const checks = [database, bell.check];
  const server = createInternalServer({
    name: "intake",
    port: settings.internal.ports.intake,
    host: settings.internal.host,
    router: intakeRouter,
    context,
    serviceToken: settings.internal.serviceToken,
    checks,
    logger,
  });
  const link = { name: "fetching link", start: () => Promise.resolve(), stop: () => fetching.close() };
  // Stopped before the server, whose calls in flight would else wait until its grace is over.
  const release = {
    name: "waits",
    start: () => Promise.resolve(),
    stop: async () => waits.releaseAll(),
  };
  return createContainer({
    name: "intake",
    components: [database, bell, hints, link, server, release],
    checks,
    logger,
    drainGraceMs: settings.timings.drainGraceMs,
  });
}
