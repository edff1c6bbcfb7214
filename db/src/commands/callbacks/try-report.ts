import type { DeadLetterReason, DeliveryState } from "@keble-scraper/contract";

/** The longest that a receiver's `Retry-After` or our own backoff puts a delivery off: 24 hours. */
export const DELIVERY_WAIT_MS_MAX = 86_400_000;

/**
 * How a try ended. The database decides, on the stored budget and the endpoint as it is now, what becomes of the
 * delivery.
 *
 * - SUCCEEDED: 2xx. FAILED: anything else.
 * - UNKNOWN: something was sent and the answer was not awaited; it counts, because the receiver may have acted on it.
 * - UNSENT: nothing was sent; the count goes back and there is no try to record.
 */
export type TryReport = {
  readonly id: string;
  readonly token: string;
  readonly tryId: string;
  readonly outcome: "SUCCEEDED" | "FAILED" | "UNKNOWN" | "UNSENT";
  readonly httpStatus: number | null;
  /** Set exactly for FAILED and UNKNOWN. */
  readonly failure: object | null;
  readonly latencyMs: number | null;
  /**
   * Where it went. GONE and FORBIDDEN are about this URL: if the endpoint has another one by now, they retry.
   */
  readonly url: string;
  /** GONE: the receiver wants no more, disable the endpoint. FORBIDDEN: the URL may not be requested, give up. */
  readonly next: "RETRY" | "GONE" | "FORBIDDEN";
  /** Our own wait until the next try. */
  readonly backoffMs: number;
  /** The receiver's; the failure's `retryAt` is written from it, by the database's clock. Null: it asked for none. */
  readonly retryAfterMs: number | null;
};

/** STALE: the lease was lost, or this very report had been committed before; nothing was written. */
export type TryVerdict = { readonly token: string } & (
  | { readonly verdict: "STALE" }
  | {
      readonly verdict: "SETTLED";
      readonly state: DeliveryState;
      readonly deadLetterReason: DeadLetterReason | null;
      /** When the next try is due; for an ended delivery, when this one was. */
      readonly dueAt: Date;
      /** The endpoint has another due delivery, which may have waited for the room that this one gave back. */
      readonly moreDue: boolean;
    }
);

/** Clocks that a settle starts: those of a delivered event and its job, and that of an audit row (400 days when absent). */
export type SettleClocks = {
  readonly eventRetentionMs: number;
  readonly jobRetentionMs: number;
  readonly auditRetentionDays?: number;
};
