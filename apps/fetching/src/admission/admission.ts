import { type Hop, hostKeyOf } from "@keble-scraper/egress";
import {
  type Clock,
  type Component,
  type HealthCheck,
  type Logger,
  type RouteRate,
  type Settings,
  SYSTEM_CLOCK,
} from "@keble-scraper/service";
import { createStickySessions, type StickySessions } from "../sticky/sticky-sessions.ts";
import { type AdmissionKey, type Limit, limitOf, spacingOf } from "./admission-key.ts";
import { type ClockStep, createClocks, type Turn } from "./clocks.ts";
import { createHolds } from "./holds.ts";
import { type AdmissionCounts, type AdmittedJob, createJobAdmission, type JobAdmission } from "./job-admission.ts";
import { createPaceLines } from "./pace-lines.ts";
import { createPauses } from "./pauses.ts";
import { createRedisScripts } from "./redis-scripts.ts";
import { createSlots, type PacedKey, type SlotHolder } from "./slots.ts";
import { createWaitingCounts } from "./waiting-counts.ts";
import { createWaitingRoom } from "./waiting-room.ts";

export type { AdmittedJob, JobAdmission } from "./job-admission.ts";

/** What admission asks of Postgres. What these throw goes to the attempt, unless it is an outage. */
export type AdmissionSql = {
  /** The clock's step while Redis is away. */
  takeAdmission(step: ClockStep): Promise<Turn>;
  /** The pace while Redis is away: lets a request go (null) or says which limit it is too early for, and by how much. */
  takePaces(limits: readonly PacedKey[]): Promise<{ readonly key: AdmissionKey; readonly inMs: number } | null>;
  /** Jobs that run on this host or route and were claimed before the holder's; asked while Redis is away. */
  countRunningBefore(key: AdmissionKey, holder: SlotHolder): Promise<number>;
  /** Queued jobs of this host or route, by and large. */
  countWaitingJobs(key: AdmissionKey): Promise<number>;
  /** How long each held host is still held, in milliseconds; others are absent. */
  listHostHolds(hostKeys: readonly string[]): Promise<ReadonlyMap<string, number>>;
  isOutage(error: unknown): boolean;
};

/** What a worker's admission is made of. `slots`: its runs side by side. */
export type AdmissionParts = {
  /** `prefix` carries a hash tag: a script's keys are in one slot of a cluster. */
  readonly redis: { readonly redisUrl: string; readonly prefix: string; readonly logger: Logger };
  readonly sql: AdmissionSql;
  readonly settings: Omit<Settings["admission"], "hostHoldMsMax">;
  /** A route that is not listed has no limit. */
  readonly routes: Readonly<Record<string, RouteRate>>;
  readonly slots: number;
  readonly leaseMs: number;
  readonly clock?: Clock;
  readonly random?: () => number;
};

/** Holds every request of a worker's attempts to the rates, slots and holds of its host and its route (W1, W2). */
export type Admission = {
  /** The admission of one attempt, which begins now and ends after `attemptMs` at the latest. */
  forJob(job: AdmittedJob, attemptMs: number): JobAdmission;
  /** A target has just asked to be left alone: this process heeds it at once, before the row that says so. */
  learnHold(hostKey: string, ms: number): void;
  /** Announces the slots of these leases again; call it with what a renewal has kept. Never waits. */
  renewSlots(tokens: readonly string[]): void;
  /** `waiting` and `held` are now, the others since the start. */
  readonly state: Readonly<AdmissionCounts> & { readonly waiting: number; readonly held: number };
  /** Exits that jobs of one `stickyKey` share; they live in the same Redis. */
  readonly sticky: StickySessions;
  /** Starts with or without Redis; its stop ends every wait as if its attempt had been stopped. */
  readonly component: Component;
  /** `admission`: degraded without Redis, never down. */
  readonly check: HealthCheck;
};

/** Puts a worker's admission together, with a connection to Redis of its own. */
export function createAdmission(parts: AdmissionParts): Admission {
  const { sql, settings } = parts;
  const { prefix } = parts.redis;
  const redis = createRedisScripts(parts.redis);
  const clock = parts.clock ?? SYSTEM_CLOCK;
  const tally: AdmissionCounts = { admitted: 0, waited: 0, sentBack: 0, stopped: 0 };
  const slots = createSlots({
    redis,
    prefix,
    leaseMs: parts.leaseMs,
    countRunningBefore: sql.countRunningBefore,
    takePaces: sql.takePaces,
  });
  const holds = createHolds({ listHostHolds: sql.listHostHolds, clock });
  const room = createWaitingRoom(parts.slots);
  const pauses = createPauses();
  const shared = {
    clocks: createClocks({ redis, prefix, takeInSql: sql.takeAdmission, voidMs: settings.waitMs, clock }),
    slots,
    holds,
    counts: createWaitingCounts({ countWaitingJobs: sql.countWaitingJobs, clock }),
    room,
    lines: createPaceLines(),
    pauses,
    waitMs: settings.waitMs,
    clock,
    random: parts.random ?? Math.random,
    tally,
    limitsOf: (hop: Hop, job: AdmittedJob) => [hostLimit(hop), routeLimit(job.route)] as const,
    isOutage: sql.isOutage,
  };

  function hostLimit({ url, crawlDelayMs }: Hop): Limit | null {
    // Only hosts that an operator lists lead elsewhere than to the public.
    if (url.reach !== "PUBLIC" && !settings.isForAllowed) return null;
    return limitOf({
      key: `host:${hostKeyOf(url)}`,
      ...spacingOf(settings.hostRequestsPerSecond, crawlDelayMs),
      slotsMax: settings.hostConcurrency,
    });
  }

  function routeLimit(route: string): Limit | null {
    const rate = parts.routes[route];
    if (rate === undefined) return null;
    return limitOf({
      key: `route:${route}`,
      ...spacingOf(rate.requestsPerSecond, null),
      slotsMax: rate.concurrency,
    });
  }

  return {
    forJob: (job, attemptMs) => createJobAdmission(job, clock.monotonicMs() + attemptMs, shared),
    learnHold: (hostKey, ms) => holds.learn(hostKey, ms),
    renewSlots: (tokens) => slots.renew(tokens),
    get state() {
      return { ...tally, waiting: room.waiting, held: slots.held };
    },
    sticky: createStickySessions({ redis, prefix, ttlMs: settings.stickySessionMs, clock }),
    check: redis.check,
    component: {
      name: "admission",
      start: (signal) => redis.start(signal),
      async stop(deadline) {
        pauses.close();
        await redis.stop(deadline);
      },
    },
  };
}
