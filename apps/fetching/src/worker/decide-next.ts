import { fullJitter } from "@keble-scraper/concurrency";
import type { Failure } from "@keble-scraper/contract";

/** What a failed attempt asks for. `waitMs` counts from now; the database decides whether budget and deadline allow it. */
export type Next = {
  readonly next: "FINISH" | "RETRY" | "RETRY_NEXT_ROUTE";
  readonly waitMs: number;
  /** What the target asked for; null when it asked for nothing. */
  readonly retryAfterMs: number | null;
};

/**
 * Reads a failure's disposition, and nothing else, into what comes next. A job waits the longer of its own backoff (full
 * jitter, doubling) and what the target asked for: never less than either.
 */
export function decideNext(
  failure: Failure,
  attemptsUsed: number,
  options: { readonly baseMs: number; readonly ceilingMs: number; random(): number; wallMs(): number },
): Next {
  const backoffMs = () => fullJitter({ ...options, factor: 2, attempt: Math.max(1, attemptsUsed) }, options.random);
  switch (failure.disposition) {
    case "TERMINAL":
      return { next: "FINISH", waitMs: 0, retryAfterMs: null };
    case "RETRY":
    case "RETRY_NEXT_ROUTE":
      return { next: failure.disposition, waitMs: backoffMs(), retryAfterMs: null };
    case "RETRY_AT": {
      // Made from a duration a moment ago by the same clock, so the difference is that duration.
      const retryAfterMs = Math.max(0, Date.parse(failure.retryAt ?? "") - options.wallMs());
      if (Number.isNaN(retryAfterMs)) throw new Error("a RETRY_AT failure needs its time");
      return { next: "RETRY", waitMs: Math.max(backoffMs(), retryAfterMs), retryAfterMs };
    }
  }
}
