import { type UpstreamFailure, upstreamFailure } from "@keble-scraper/contract";
import { readRetryAt } from "./read-retry-after.ts";
import type { ResponseHead } from "./response-head.ts";

/** What a final status is judged by. `wallMs`: epoch milliseconds, for a Retry-After without a Date beside it. */
export type StatusRules = {
  readonly accept: "SUCCESS_ONLY" | "ANY_RESPONSE";
  /** Whether the final request carried the caller's condition. */
  readonly isConditional: boolean;
  readonly wallMs: number;
};

/** Why a final status is a failure; null when it is an answer. */
export function judgeStatus(head: ResponseHead, rules: StatusRules): UpstreamFailure | null {
  const { httpStatus } = head;
  if (httpStatus === 429) return upstreamFailure("RATE_LIMITED", { httpStatus, ...whenToRetry(head, rules.wallMs) });
  if (httpStatus >= 500 && httpStatus <= 599) {
    return upstreamFailure("HTTP_SERVER_ERROR", { httpStatus, ...whenToRetry(head, rules.wallMs) });
  }
  if (rules.accept === "ANY_RESPONSE") return null;
  if (httpStatus >= 200 && httpStatus <= 299) return null;
  if (httpStatus === 304 && rules.isConditional) return null;
  if (httpStatus === 404 || httpStatus === 410) return upstreamFailure("NOT_FOUND", { httpStatus });
  if (httpStatus >= 400 && httpStatus <= 499) return upstreamFailure("HTTP_CLIENT_ERROR", { httpStatus });
  return upstreamFailure("UNACCEPTABLE_STATUS", { httpStatus });
}

/** A readable Retry-After makes it RETRY_AT, else RETRY; both on the same route. */
function whenToRetry(
  head: ResponseHead,
  wallMs: number,
): { readonly disposition: "RETRY" } | { readonly disposition: "RETRY_AT"; readonly retryAt: string } {
  const retryAt = readRetryAt(head, wallMs);
  return retryAt === null ? { disposition: "RETRY" } : { disposition: "RETRY_AT", retryAt };
}
