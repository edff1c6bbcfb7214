import type { Capture, Route } from "@keble-scraper/contract";

/**
 * What admission has booked for a job: the earliest time at which its next request may be sent, to its host and by its
 * route, in epoch milliseconds of the admission clock; null where nothing is booked.
 */
export type Booking = {
  readonly hostKey: string | null;
  readonly hostAtMs: number | null;
  readonly route: string | null;
  readonly routeAtMs: number | null;
};

/** A claimed job: all that a run needs, so that it asks the database nothing. Durations are from the database's clock. */
export type JobLease = {
  readonly id: string;
  readonly token: string;
  readonly callerId: string;
  readonly attemptNumber: number;
  readonly attemptsUsed: number;
  readonly attemptBudget: number;
  readonly route: Route;
  readonly isLastRoute: boolean;
  /** How many routes the job lists behind `route`. */
  readonly routesLeft: number;
  /** True when `route` is not the job's own next one, because that one is quarantined. */
  readonly isDiverted: boolean;
  /** True when the job's last worker was lost. */
  readonly isSuspect: boolean;
  readonly target: {
    readonly url: string;
    readonly method: "GET" | "HEAD";
    readonly headers: Readonly<Record<string, string>>;
  };
  /** What the target's rate, slots and holds are kept by. */
  readonly hostKey: string;
  readonly accept: "SUCCESS_ONLY" | "ANY_RESPONSE";
  readonly contentTypes: readonly string[] | null;
  readonly robots: "RESPECT" | "IGNORE";
  /** What a render keeps; null: the job did not say, or is no render. */
  readonly capture: Capture | null;
  /** Where a paid route should come out; null: anywhere. */
  readonly egress: { readonly country?: string; readonly stickyKey?: string } | null;
  readonly maxBodyBytes: number;
  /** What its answer is kept by (hex); null: it takes and leaves nothing in the cache. */
  readonly cacheKey: string | null;
  /** The oldest stored answer that will do; 0: none. */
  readonly freshnessMs: number;
  readonly costCapMicros: number;
  /** What the job's earlier attempts cost. */
  readonly costMicros: number;
  /** What an earlier attempt booked and did not use; null: nothing. */
  readonly booking: Booking | null;
  readonly leaseMs: number;
  readonly untilDeadlineMs: number;
  /** How long the job had been due. */
  readonly queueMs: number;
};
