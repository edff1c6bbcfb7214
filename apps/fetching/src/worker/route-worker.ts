import { createFence, createSpool, createStore, StoreUnavailable } from "@keble-scraper/artifact-store";
import {
  createDatabase,
  type EndedJob,
  findNamespace,
  hasStoredRows,
  isDatabaseOutage,
  isDatabaseUnready,
  listHeldTokens,
} from "@keble-scraper/db";
import {
  type AttemptReport,
  deferJobs,
  type Release,
  releaseJobs,
  renewLeases,
  type SettleVerdict,
  settleJobs,
  wakeWaitingJobs,
} from "@keble-scraper/db/commands/fetching";
import {
  type Clock,
  type Component,
  type Container,
  HINT_CHANNELS,
  NO_SIGNALS,
  SYSTEM_CLOCK,
  type Signals,
  createBell,
  createBellListener,
  createClaimLoop,
  createContainer,
  createEndedAnnouncer,
  createHints,
  createLogger,
  createSettleLane,
  startPatiently,
} from "@keble-scraper/service";
import type { FetchingSettings } from "../settings.ts";
import { createAdmission } from "../admission/admission.ts";
import { createAdmissionSql } from "../admission/admission-sql.ts";
import type { AttemptOutcome } from "./attempt-outcome.ts";
import { createAttemptParts } from "./attempt-parts.ts";
import { createFollowers } from "./cache/followers.ts";
import { createJobCache } from "./cache/job-cache.ts";
import { createLookPace } from "./cache/look-pace.ts";
import { createCancelWatch } from "./cancel-watch.ts";
import { createClaimNextJobs } from "./claim-next-jobs.ts";
import type { ClaimedJob } from "./claimed-job.ts";
import { createDuePokes } from "./due-pokes.ts";
import { createDeferrals } from "./deferrals.ts";
import { finishAttempt } from "./finish-attempt.ts";
import { createGather } from "./gather.ts";
import { runAttempt } from "./run-attempt.ts";
import { createTellNext } from "./tell-next.ts";
import type { Ways } from "./way.ts";

/** What tests may replace: the edges, and the named points. */
export type RouteWorkerOverrides = {
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly signals?: Signals;
  readonly ways?: Ways;
};

/** What tells one kind of worker from another: the jobs it claims, the ways it knows, how many runs it bears. */
export type RouteWorkerKind = {
  readonly name: "worker-fetch" | "worker-render";
  readonly transport: "HTTP" | "RENDER";
  readonly bell: "fetch" | "render";
  slots(settings: FetchingSettings): number;
  openWays(settings: FetchingSettings): Ways;
};

/** Four connections serve a worker's claims, renewals and settles (measured). */
const COMMAND_CONNECTIONS = 4;
/** Settles at once: more made no difference (measured). */
const SETTLE_LANES = 2;
/** Releases of one statement. */
const RELEASES_MAX = 100;
/** Ended runs that wait for their settle without a slot. */
const UNSETTLED_MAX = 100;

/** A worker: claims jobs of its transport, fetches them by their routes, keeps their bytes, settles. Any number may run. */
export function createRouteWorker(
  kind: RouteWorkerKind,
  settings: FetchingSettings,
  overrides: RouteWorkerOverrides = {},
): Container {
  const clock = overrides.clock ?? SYSTEM_CLOCK;
  const random = overrides.random ?? Math.random;
  const signals = overrides.signals ?? NO_SIGNALS;
  const { leaseMs, pollMs, abortGraceMs, drainGraceMs } = settings.timings;
  const { jobMs: jobRetentionMs, auditDays: auditRetentionDays } = settings.retention;
  const { artifactMs: artifactRetentionMs, evidenceMs: evidenceRetentionMs } = settings.retention;
  const settleOptions = {
    abortGraceMs,
    jobRetentionMs,
    artifactRetentionMs,
    evidenceRetentionMs,
    auditRetentionDays,
    cacheRetentionMs: settings.retention.cacheMs,
  };

  const logger = createLogger({ name: kind.name, level: settings.logLevel });
  const database = createDatabase({
    url: settings.database.url,
    applicationName: `keble-${kind.name}`,
    commandConnections: COMMAND_CONNECTIONS,
    readConnections: 1,
    statementTimeoutMs: leaseMs / 4,
  });
  const sql = database.commands;
  const redis = { redisUrl: settings.redis.url, prefix: settings.redis.prefix, logger };
  const bell = createBell(redis);
  const hints = createHints(redis);
  const spool = createSpool({ directory: settings.fetching.spoolDirectory });
  const store = createStore(settings.artifacts.store);
  const away = { isAway: (error: unknown) => isDatabaseUnready(error) || error instanceof StoreUnavailable, logger };
  const fence = createFence({
    store,
    owner: settings.artifacts.namespaceOwner,
    findNamespace: () => findNamespace(database.commands),
    hasRows: () => hasStoredRows(database.commands),
  });
  const ways = overrides.ways ?? kind.openWays(settings);
  const slots = kind.slots(settings);
  const admission = createAdmission({
    redis,
    sql: createAdmissionSql(sql),
    settings: settings.admission,
    routes: settings.routes,
    slots,
    leaseMs,
    clock,
    random,
  });
  const cache = createJobCache(sql, { isShared: settings.cache.isShared, ...settleOptions });
  const attemptParts = createAttemptParts(settings, {
    sql,
    ways,
    admission,
    spool,
    store,
    cache,
    clock,
    random,
    logger,
  });
  const onEnded = createEndedAnnouncer({ hints, bell });
  const deferrals = createDeferrals({
    async defer(limit) {
      const { taken, ended } = await deferJobs(sql, { limit, jobRetentionMs });
      onEnded(ended);
      return taken;
    },
    monotonicMs: clock.monotonicMs,
    logger,
  });
  const inHand = new Map<string, ClaimedJob>();

  const lane = createSettleLane<AttemptReport, SettleVerdict>({
    lanes: SETTLE_LANES,
    stale: ({ token }) => ({ token, verdict: "STALE", ended: null }),
    settleGroup: (reports) => settleJobs(sql, reports, settleOptions),
    isBusy: () => loop.running > 0,
    isOutage: isDatabaseOutage,
  });
  const pace = createLookPace(clock.monotonicMs);
  const followers = createFollowers({
    pace,
    wake: (jobs) => wakeWaitingJobs(sql, jobs),
    onWoken: () => loop.poke(),
    logger,
  });
  // Jobs that wait for another's fetch come back together.
  const release = createGather<Release, readonly EndedJob[]>({
    max: RELEASES_MAX,
    async run(releases) {
      const ended = await releaseJobs(sql, releases, settleOptions);
      return releases.map(({ id }) => ended.filter((job) => job.id === id));
    },
  });
  const finishParts = {
    lane,
    storeBody: attemptParts.storeBody,
    followers,
    pace,
    dropCached: cache.drop,
    release,
    isOutage: isDatabaseOutage,
    onDueIn: (ms: number) => duePokes.in(ms),
    onShut: () => deferrals.poke(),
    onEnded,
    signals,
    logger,
  };
  const claimNextJobs = createClaimNextJobs({
    sql,
    transport: kind.transport,
    leaseSeconds: leaseMs / 1_000,
    callerRunningMax: settings.callers.runningMax,
    monotonicMs: clock.monotonicMs,
    onPartial: (error) => logger.warn({ err: error }, "claim.partial"),
  });
  const tellNext = createTellNext({
    ring: () => bell.ring(kind.bell, { transport: kind.transport }),
    monotonicMs: clock.monotonicMs,
  });
  const loop = createClaimLoop<ClaimedJob, AttemptOutcome>({
    name: kind.bell,
    slots,
    pollMs,
    leaseMs,
    unsettledMax: UNSETTLED_MAX,
    async claim(freeSlots, running) {
      const claimed = await claimNextJobs(freeSlots, running);
      tellNext(freeSlots, claimed.leases.length);
      return claimed;
    },
    async renew(leases) {
      admission.renewSlots(leases.map(({ token }) => token));
      return renewLeases(sql, leases, leaseMs / 1_000);
    },
    async run(job, control) {
      inHand.set(job.token, job);
      const hasWaited = followers.came(job);
      try {
        const outcome = await runAttempt(job, control, attemptParts);
        // The answer that it waited for is there, whoever fetched it.
        if (hasWaited && outcome.kind === "TAKEN") followers.wake(job.cacheKey, "ANSWERED");
        return outcome;
      } finally {
        inHand.delete(job.token);
      }
    },
    async finish(job, outcome, control) {
      try {
        await finishAttempt(job, outcome, control, finishParts);
      } finally {
        // The next suspect may be claimed once this one is out of hand, which is right after this.
        if (job.isSuspect) setImmediate(() => loop.poke());
      }
    },
    async discard(outcome) {
      if (outcome.kind === "REPORTED") await outcome.body?.discard();
    },
    onFault: (job, error) => logger.error({ jobId: job.id, attempt: job.attemptNumber, err: error }, "attempt.faulted"),
    clock,
    random,
    signals,
    logger,
  });
  const duePokes = createDuePokes({ poke: () => loop.poke(), pollMs, monotonicMs: clock.monotonicMs });
  const listener = createBellListener({ ...redis, kind: kind.bell, onRing: () => loop.poke() });
  const watch = createCancelWatch({
    running: () => [...inHand.values()],
    held: (jobs) => listHeldTokens(sql, jobs),
    abort: (tokens) => loop.abort((job) => tokens.has(job.token)),
    logger,
  });
  hints.subscribe(HINT_CHANNELS.jobsCancelled, (ids) => loop.abort((job) => ids.includes(job.id)));

  const pools: Component = {
    name: "egress",
    start: () => Promise.resolve(),
    stop: async (deadline) => {
      await Promise.all([...ways.values()].map(({ transport }) => transport.close(deadline)));
    },
  };
  return createContainer({
    name: kind.name,
    components: [
      database,
      startPatiently(store, away),
      startPatiently(fence, away),
      spool,
      pools,
      admission.component,
      bell,
      hints,
      deferrals,
      duePokes,
      watch,
      loop,
      listener,
    ],
    checks: [database, bell.check, listener.check, admission.check],
    logger,
    drainGraceMs,
  });
}
