import type { EndedJob } from "../../steps/ended-job.ts";

/** Where bytes are: put under ids that the worker made, or seen there, AVAILABLE, so that the put was skipped. */
export type BytesPlace =
  | { readonly kind: "PUT"; readonly blobId: string; readonly generation: string }
  | { readonly kind: "SEEN"; readonly blobId: string };

/** Bytes that are durable in the store, and what the artifact's row says of them. */
export type StoredBytes = BytesPlace & {
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly artifactId: string;
  readonly contentType: string | null;
  readonly finalUrl: string;
  readonly httpStatus: number;
};

/** What an answer leaves in the cache, under its job's key (hex). Only a final 2xx does. */
export type CacheReport = {
  readonly key: string;
  /** For all callers; else for the job's own. */
  readonly isShared: boolean;
  /** Callers share this key, and this answer is one caller's own. */
  readonly marksOwn: boolean;
  /** What a revalidation will ask with; null: nothing. */
  readonly etag: string | null;
  readonly lastModified: string | null;
};

/**
 * How an attempt ended. `next` is the worker's reading of the disposition; the database decides whether budget, routes
 * and deadline, as stored, allow it. `waitMs` is the horizon that the failure asked for, from now.
 */
export type AttemptReport = {
  readonly id: string;
  readonly token: string;
  readonly attemptId: string;
  readonly outcome: "SUCCEEDED" | "FAILED" | "HANDED_BACK";
  readonly httpStatus: number | null;
  readonly failure: object | null;
  /** How long the target asked us to wait; the failure's `retryAt` is written from it, by the database's clock. */
  readonly retryAfterMs: number | null;
  readonly bodyBytes: number;
  readonly wireBytes: number;
  readonly timings: Readonly<Record<string, number | null>>;
  /** `fetchedAt` is the moment of the settle, unless the result says another. */
  readonly result: object | null;
  /** A SUCCEEDED attempt's bytes are the job's; a FAILED one's are its evidence. */
  readonly bytes: StoredBytes | null;
  readonly next: "FINISH" | "RETRY" | "RETRY_NEXT_ROUTE";
  readonly waitMs: number;
  /** False only where nothing was reserved: then 0 is what it cost. A wrong word costs a second statement, never money. */
  readonly hasReservation: boolean;
  /** What it cost; null: what was reserved. A HANDED_BACK attempt costs what was reserved, whatever this says. */
  readonly costMicros: number | null;
  readonly providerRequestId: string | null;
  /** Keeps every worker off this host from now; a longer hold stands. */
  readonly hold: { readonly hostKey: string; readonly ms: number } | null;
  /** Closes the attempt's route to all jobs; `forMs` null: until somebody releases it. A longer or an operator's stands. */
  readonly quarantine: {
    readonly reason: string;
    readonly nativeCode: string | null;
    readonly forMs: number | null;
  } | null;
  /** Null or absent: nothing. */
  readonly cache?: CacheReport | null;
};

/**
 * SETTLED: the attempt is recorded, and the job ended or is due again. BYTES_GONE: the blob that was seen is no longer
 * there; nothing was written, put the bytes and settle again under the same lease. STALE: the lease was lost, or this
 * very report had been committed before; nothing was written.
 */
export type SettleVerdict = {
  readonly token: string;
  readonly verdict: "SETTLED" | "BYTES_GONE" | "STALE";
  readonly ended: EndedJob | null;
};
