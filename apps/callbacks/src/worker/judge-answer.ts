import { type UpstreamFailure, upstreamFailure } from "@keble-scraper/contract";
import type { TryReport } from "@keble-scraper/db/commands/callbacks";

/** What an answer means for its delivery. */
export type Judgement = Pick<TryReport, "outcome" | "failure" | "next" | "retryAfterMs">;

/**
 * Reads a receiver's status. 2xx is a delivery. 410 says that the endpoint wants no more. 429 and 503 may say when to come
 * back. Everything else, redirects among it, is tried again until the delivery's budget is spent: only the receiver's
 * owner can mend it, and the try's failure says so by its disposition.
 */
export function judgeAnswer(httpStatus: number, retryAfterMs: number | null): Judgement {
  if (httpStatus >= 200 && httpStatus <= 299) {
    return { outcome: "SUCCEEDED", failure: null, next: "RETRY", retryAfterMs: null };
  }
  if (httpStatus === 410) {
    const failure = failureOf("HTTP_CLIENT_ERROR", httpStatus, "TERMINAL");
    return { outcome: "FAILED", failure, next: "GONE", retryAfterMs: null };
  }
  const waits = (httpStatus === 429 || httpStatus === 503) && retryAfterMs !== null;
  const failure = failureOf(codeOf(httpStatus), httpStatus, waits ? "RETRY_AT" : "RETRY");
  return { outcome: "FAILED", failure, next: "RETRY", retryAfterMs: waits ? retryAfterMs : null };
}

function codeOf(httpStatus: number): UpstreamFailure["code"] {
  if (httpStatus === 429) return "RATE_LIMITED";
  if (httpStatus >= 500 && httpStatus <= 599) return "HTTP_SERVER_ERROR";
  if (httpStatus >= 400 && httpStatus <= 499) return "HTTP_CLIENT_ERROR";
  return httpStatus >= 300 && httpStatus <= 399 ? "REDIRECT_FORBIDDEN" : "UNACCEPTABLE_STATUS";
}

/** `retryAt` is written by the settle, by the database's clock. */
function failureOf(code: UpstreamFailure["code"], httpStatus: number, disposition: UpstreamFailure["disposition"]) {
  const message = `The receiver answered ${httpStatus}.`;
  return upstreamFailure(code, { httpStatus, disposition, action: "NONE", message });
}
