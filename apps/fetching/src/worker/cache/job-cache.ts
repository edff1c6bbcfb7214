import {
  type CachedAnswer,
  findStoredAnswer,
  isDatabaseOutage,
  listCachedAnswers,
  type Sql,
  type StoredAnswer,
} from "@keble-scraper/db";
import {
  type CacheHit,
  type CacheVerdict,
  dropCachedAnswer,
  finishFromCache,
  type FlightRequest,
  type FlightVerdict,
  takeFlights,
} from "@keble-scraper/db/commands/fetching";
import { createSettleLane, type RunControl } from "@keble-scraper/service";
import { createGather } from "../gather.ts";
import { type CacheAdvice, type CachingJob, consultCache } from "./consult-cache.ts";

/** The cache as a worker's attempts use it. */
export type JobCache = {
  consult(job: CachingJob, control: RunControl): Promise<CacheAdvice>;
  /** All of an answer that was seen; null: it is not there any more, or can't be read now. */
  load(answer: CachedAnswer): Promise<StoredAnswer | null>;
  /**
   * Drops an answer that its target does not vouch for, or whose bytes are gone. While the database is away it stays, for the next
   * who asks.
   */
  drop(answer: CachedAnswer): Promise<void>;
};

/** Requests of one statement. */
const GROUP_MAX = 50;
const LANES = 2;

/** Opens nothing: all of it goes through the worker's command pool. */
export function createJobCache(
  sql: Sql,
  options: {
    readonly isShared: boolean;
    readonly abortGraceMs: number;
    readonly jobRetentionMs: number;
    readonly artifactRetentionMs: number;
  },
): JobCache {
  const look = createGather({
    max: GROUP_MAX,
    async run(asked: readonly (readonly { readonly key: string; readonly callerId: string }[])[]) {
      const { answers, flights } = await listCachedAnswers(sql, asked.flat());
      return asked.map((places) => {
        const isHere = (one: { key: string; callerId: string }) =>
          places.some(({ key, callerId }) => key === one.key && callerId === one.callerId);
        return { answers: answers.filter(isHere), flights: flights.filter(isHere) };
      });
    },
  });
  const fly = createGather<FlightRequest, FlightVerdict>({
    max: GROUP_MAX,
    async run(requests) {
      const verdicts = await takeFlights(sql, requests);
      return requests.map(({ token }) => verdicts.get(token) ?? { kind: "STALE" });
    },
  });
  const lane = createSettleLane<CacheHit, CacheVerdict>({
    lanes: LANES,
    stale: ({ token }) => ({ token, verdict: "STALE", ended: null, ageSeconds: null }),
    settleGroup: (hits) => finishFromCache(sql, hits, options),
    isBusy: () => true,
    isOutage: isDatabaseOutage,
  });
  const parts = {
    isShared: options.isShared,
    look,
    fly,
    take: (hit: CacheHit, isTrusted: () => boolean) => lane.settle(hit, isTrusted),
    isOutage: isDatabaseOutage,
  };
  return {
    consult: (job, control) => consultCache(job, control, parts),
    load: (answer) => findStoredAnswer(sql, answer).catch(unlessAway),
    async drop(answer) {
      await dropCachedAnswer(sql, answer).catch(unlessAway);
    },
  };
}

function unlessAway(error: unknown): null {
  if (isDatabaseOutage(error)) return null;
  throw error;
}
