import { LRUCache } from "lru-cache";

/** Decides per submit whether the caller's queue must be counted exactly. */
export type QueueMeter = {
  /** The bound to enforce exactly in the submit, or null when there is surely room for `jobs` more. */
  boundFor(callerId: string, jobs: number): Promise<number | null>;
};

/** An estimate is made anew after this long, because other processes submit too. */
const FRESH_MS = 1_000;
/** More than the other intake processes can accept for one caller while an estimate is fresh. */
const MARGIN_JOBS = 20_000;
/** Callers remembered at once. */
const CALLERS_MAX = 10_000;

type Estimate = { readonly counted: Promise<number>; readonly countedAt: number; submitted: number };

/**
 * Counting 100,000 waiting jobs takes milliseconds, so a submit trusts an estimate (the last count plus what this
 * process has submitted since) while it is 20,000 jobs below the bound. Nearer to it, and with a bound that is smaller,
 * every submit counts under the caller's lock.
 */
export function createQueueMeter(options: {
  readonly queuedMax: number;
  count(callerId: string, upTo: number): Promise<number>;
  monotonicMs(): number;
}): QueueMeter {
  const estimates = new LRUCache<string, Estimate>({ max: CALLERS_MAX });
  const trustedMax = options.queuedMax - MARGIN_JOBS;

  function estimateOf(callerId: string): Estimate {
    const now = options.monotonicMs();
    const known = estimates.get(callerId);
    if (known !== undefined && now - known.countedAt < FRESH_MS) return known;
    const fresh = { counted: options.count(callerId, trustedMax + 1), countedAt: now, submitted: 0 };
    estimates.set(callerId, fresh);
    // A count that failed must not be remembered; whoever awaits it hears of it.
    fresh.counted.catch(() => estimates.delete(callerId));
    return fresh;
  }

  return {
    async boundFor(callerId, jobs) {
      if (trustedMax <= 0) return options.queuedMax;
      const estimate = estimateOf(callerId);
      estimate.submitted += jobs;
      return (await estimate.counted) + estimate.submitted <= trustedMax ? null : options.queuedMax;
    },
  };
}
