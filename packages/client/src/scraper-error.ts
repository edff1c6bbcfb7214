import {
  type Action,
  type Disposition,
  DISPOSITIONS,
  type ErrorDetail,
  type LocalCode,
  type UpstreamCode,
} from "@keble-scraper/contract";
import { TRPCClientError } from "@trpc/client";

/** What the service said of a call that did not succeed. A newer service may send codes that are not known here. */
export type ScraperFailure = {
  readonly kind: "LOCAL" | "UPSTREAM";
  readonly origin: string;
  readonly code: LocalCode | UpstreamCode | (string & {});
  /** What to do next; decide by this. */
  readonly disposition: Disposition;
  readonly message: string;
  readonly requestId: string;
  /** RFC 3339; with the disposition RETRY_AT, not before this moment. */
  readonly retryAt?: string;
  readonly action?: Action;
  readonly details?: readonly ErrorDetail[];
};

/**
 * Why a call did not succeed. `failure` null: no answer of the service came, or none that can be read (no connection, a
 * proxy's page, an abort); `cause` says which.
 */
export class ScraperError extends Error {
  readonly failure: ScraperFailure | null;

  constructor(message: string, failure: ScraperFailure | null, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = "ScraperError";
    this.failure = failure;
  }
}

/** The ScraperError of anything a call threw. */
export function toScraperError(error: unknown): ScraperError {
  if (error instanceof ScraperError) {
    return error;
  }
  const failure = error instanceof TRPCClientError ? readFailure(error.data as unknown) : null;
  const message = failure?.message ?? "The service gave no answer that can be read.";
  return new ScraperError(message, failure, { cause: error });
}

function readFailure(data: unknown): ScraperFailure | null {
  const error = typeof data === "object" && data !== null && "error" in data ? data.error : undefined;
  if (typeof error !== "object" || error === null) {
    return null;
  }
  const { kind, origin, code, disposition, message, requestId } = error as Record<string, unknown>;
  const isWhole =
    (kind === "LOCAL" || kind === "UPSTREAM") &&
    DISPOSITIONS.some((known) => known === disposition) &&
    [origin, code, message, requestId].every((text) => typeof text === "string");
  return isWhole ? (error as ScraperFailure) : null;
}
