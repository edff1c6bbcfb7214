import { createDatabase, isDatabaseOutage } from "@keble-scraper/db";
import {
  renewDeliveries,
  settleDeliveries,
  type TryReport,
  type TryVerdict,
} from "@keble-scraper/db/commands/callbacks";
import { type CallbackTransport, createCallbackTransport, createResolver } from "@keble-scraper/egress";
import {
  type Clock,
  type Component,
  type Container,
  createBellListener,
  createClaimLoop,
  createContainer,
  createLogger,
  createSettleLane,
  NO_SIGNALS,
  type Signals,
  SYSTEM_CLOCK,
} from "@keble-scraper/service";
import { callbackPolicyOf, logAllowedReceivers } from "../callback-policy.ts";
import { createSecretBox } from "../secret-box.ts";
import type { CallbacksSettings } from "../settings.ts";
import { createClaimNextDeliveries } from "./claim-next-deliveries.ts";
import type { ClaimedDelivery } from "./claimed-delivery.ts";
import { finishTry } from "./finish-try.ts";
import { runTry, type TryOutcome } from "./run-try.ts";

/** What tests may replace: the edges, and the named points. */
export type CallbacksWorkerOverrides = {
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly signals?: Signals;
  readonly transport?: CallbackTransport;
};

/** A claim, a renewal, a settle and the storing of bytes may be under way at once. */
const COMMAND_CONNECTIONS = 4;
/** Answered tries that wait for their settle without a slot. */
const UNSETTLED_MAX = 100;

/** A delivery worker: claims deliveries, sends them signed, settles. Any number may run. */
export function createCallbacksWorker(
  settings: CallbacksSettings,
  overrides: CallbacksWorkerOverrides = {},
): Container {
  const clock = overrides.clock ?? SYSTEM_CLOCK;
  const random = overrides.random ?? Math.random;
  const signals = overrides.signals ?? NO_SIGNALS;
  const { leaseMs, pollMs, drainGraceMs } = settings.timings;
  const clocks = {
    eventRetentionMs: settings.retention.eventMs,
    jobRetentionMs: settings.retention.jobMs,
    auditRetentionDays: settings.retention.auditDays,
  };

  const logger = createLogger({ name: "worker-callbacks", level: settings.logLevel });
  logAllowedReceivers(settings, logger);
  const database = createDatabase({
    url: settings.database.url,
    applicationName: "keble-worker-callbacks",
    commandConnections: COMMAND_CONNECTIONS,
    readConnections: 1,
    statementTimeoutMs: leaseMs / 4,
  });
  const transport = overrides.transport ?? createTransport(settings);
  const tryParts = {
    transport,
    policy: callbackPolicyOf(settings),
    secrets: createSecretBox(settings.secretKey),
    retry: { baseMs: settings.callbacks.retryBaseMs, ceilingMs: settings.callbacks.retryCeilingMs },
    random,
    onUnopenable: ({ eventId, endpointId }: ClaimedDelivery) =>
      logger.error({ eventId, endpointId }, "secret.unopenable"),
  };
  const finishParts = {
    lane: createSettleLane<TryReport, TryVerdict>({
      lanes: 1,
      stale: ({ token }) => ({ token, verdict: "STALE" }),
      isBusy: () => false,
      settleGroup: (reports) => settleDeliveries(database.commands, reports, clocks),
      isOutage: isDatabaseOutage,
    }),
    onMoreDue: () => loop.poke(),
    signals,
    logger,
  };
  const loop = createClaimLoop<ClaimedDelivery, TryOutcome>({
    name: "callbacks",
    slots: settings.callbacks.slots,
    pollMs,
    leaseMs,
    unsettledMax: UNSETTLED_MAX,
    claim: createClaimNextDeliveries({ database, leaseSeconds: leaseMs / 1_000, monotonicMs: clock.monotonicMs }),
    renew: (leases) => renewDeliveries(database.commands, leases, leaseMs / 1_000),
    run: (delivery, control) => runTry(delivery, control, tryParts),
    finish: (delivery, outcome, control) => finishTry(delivery, outcome, control, finishParts),
    onFault: ({ id, eventId, attemptsUsed }, error) =>
      logger.error({ deliveryId: id, eventId, try: attemptsUsed, err: error }, "try.faulted"),
    clock,
    random,
    signals,
    logger,
  });
  const listener = createBellListener({
    redisUrl: settings.redis.url,
    prefix: settings.redis.prefix,
    logger,
    kind: "callbacks",
    onRing: () => loop.poke(),
  });
  const pools: Component = {
    name: "egress",
    start: () => Promise.resolve(),
    stop: (deadline) => transport.close(deadline),
  };
  return createContainer({
    name: "worker-callbacks",
    components: [database, pools, loop, listener],
    checks: [database, listener.check],
    logger,
    drainGraceMs,
  });
}

function createTransport(settings: CallbacksSettings): CallbackTransport {
  const policy = callbackPolicyOf(settings);
  return createCallbackTransport({
    resolver: createResolver({ systemNames: policy.allowedCallbacks.names }),
    policy,
    limits: { connectTimeoutMs: settings.callbacks.connectTimeoutMs },
    userAgent: settings.callbacks.userAgent,
  });
}
