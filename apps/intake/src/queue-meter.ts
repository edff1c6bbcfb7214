import { LRUCache } from "lru-cache";

/** Decides per submit whether the caller's queue must be counted exactly. */
export type QueueMeter = {
  /** The bound to enforce exactly in the submit, or null when there is surely room for `jobs` more. */
  boundFor(callerId: string, jobs: number): Promise<number | null>;
};

/** An estimate is made anew after this long, because other processes submit too. */
const FRESH_MS = 1_000;
/** Callers remembered at once. */
const CALLERS_MAX = 10_000;

/**
 * Counting 100,000 waiting jobs takes milliseconds, so a submit trusts an estimate (the last count plus what this
 * process has submitted since) while it is below half of the bound. Above it every submit counts under the caller's
 * lock. The estimate can be off only by what other intake processes accept within one second.
 */
export function createQueueMeter(options: {
  readonly queuedMax: number;
  count(callerId: string, upTo: number): Promise<number>;
  monotonicMs(): number;
}): QueueMeter {
  const estimates = new LRUCache<string, { jobs: number; countedAt: number }>({ max: CALLERS_MAX });
  const half = Math.floor(options.queuedMax / 2);
  return {
    async boundFor(callerId, jobs) {
      const now = options.monotonicMs();
      let estimate = estimates.get(callerId);
      if (estimate === undefined || now - estimate.countedAt >= FRESH_MS) {
        estimate = { jobs: await options.count(callerId, half + 1), countedAt: now };
        estimates.set(callerId, estimate);
      }
      estimate.jobs += jobs;
      return estimate.jobs <= half ? null : options.queuedMax;
    },
  };
}
