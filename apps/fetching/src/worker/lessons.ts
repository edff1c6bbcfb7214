import type { AttemptReport } from "@keble-scraper/db/commands/fetching";
import { type FetchOutcome, quarantineOf } from "@keble-scraper/egress";
import { quarantineMs } from "../quarantine-ms.ts";
import type { ClaimedJob } from "./claimed-job.ts";

/** What a failure teaches beyond its own job: a host that wants to be left alone, a route whose supplier turned us away. */
export type Lessons = {
  /** `retryAfterMs`: what the target asked for; null when it asked for nothing. */
  learn(
    job: ClaimedJob,
    fetched: FetchOutcome & { ok: false; aborted: false },
    retryAfterMs: number | null,
  ): { readonly hold: AttemptReport["hold"]; readonly quarantine: AttemptReport["quarantine"] };
  /** Whether this process has just learned that the route is shut. */
  isShut(route: string): boolean;
};

/**
 * For how long a route stays shut by memory alone: until the row that says so has long been written and every claim reads
 * it, and no longer, since an operator may release the route.
 */
const SHUT_MS = 3_000;

/** Tells this process's own admission of a hold at once: the row comes with the attempt's settle. */
export function createLessons(options: {
  readonly holdMsMax: number;
  onHold(hostKey: string, ms: number): void;
  monotonicMs(): number;
  wallMs(): number;
}): Lessons {
  const shutUntil = new Map<string, number>();

  return {
    learn(job, { failure, hostKey }, retryAfterMs) {
      const isTargets = failure.kind === "UPSTREAM" && failure.origin === "TARGET";
      const ms = retryAfterMs === null || !isTargets ? 0 : Math.min(retryAfterMs, options.holdMsMax);
      if (ms > 0) options.onHold(hostKey, ms);
      const hold = ms > 0 ? { hostKey, ms } : null;
      const wallMs = options.wallMs();
      const advice = quarantineOf(failure, wallMs);
      if (advice === null) return { hold, quarantine: null };
      shutUntil.set(job.route, options.monotonicMs() + SHUT_MS);
      const nativeCode = failure.kind === "UPSTREAM" ? (failure.nativeCode ?? null) : null;
      return { hold, quarantine: { reason: advice.reason, forMs: quarantineMs(advice, wallMs), nativeCode } };
    },
    isShut: (route) => options.monotonicMs() < (shutUntil.get(route) ?? 0),
  };
}
