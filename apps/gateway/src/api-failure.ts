import { type DetailedFailure, FAILURES, localFailure, zodDetails } from "@keble-scraper/contract";
import { DependencyUnavailable } from "@keble-scraper/service";
import { TRPCError } from "@trpc/server";
import { z } from "zod";

/** The one error a public procedure throws: a failure on its way to the envelope. */
export class ApiFailure extends TRPCError {
  readonly failure: DetailedFailure;

  constructor(failure: DetailedFailure) {
    super({ code: TRPC_CODES[httpStatusOf(failure)] ?? "INTERNAL_SERVER_ERROR", message: failure.message });
    this.failure = failure;
  }
}

/** The codes tRPC knows statuses by. They decide nothing: the status itself is in the answer. */
const TRPC_CODES: Readonly<Record<number, TRPCError["code"]>> = {
  400: "BAD_REQUEST",
  401: "UNAUTHORIZED",
  403: "FORBIDDEN",
  404: "NOT_FOUND",
  405: "METHOD_NOT_SUPPORTED",
  409: "CONFLICT",
  413: "PAYLOAD_TOO_LARGE",
  415: "UNSUPPORTED_MEDIA_TYPE",
  422: "UNPROCESSABLE_CONTENT",
  429: "TOO_MANY_REQUESTS",
  502: "BAD_GATEWAY",
  503: "SERVICE_UNAVAILABLE",
  504: "GATEWAY_TIMEOUT",
};

/** What a 429 or 503 without a `retryAt` of its own asks for, in seconds. */
const RETRY_AFTER_DEFAULT_SECONDS = 2;
/** The longest wait a header asks for: a day. */
const RETRY_AFTER_SECONDS_MAX = 86_400;

/** The status of a failure's envelope, by the table. */
export function httpStatusOf(failure: DetailedFailure): number {
  return failure.kind === "LOCAL"
    ? FAILURES.LOCAL[failure.code].httpStatus
    : FAILURES.UPSTREAM[failure.code].httpStatus;
}

/** The headers an error needs by its status. `nowMs` is the wall clock. */
export function failureHeaders(failure: DetailedFailure, nowMs: number): Record<string, string> {
  const status = httpStatusOf(failure);
  if (status === 401) {
    return { "www-authenticate": "Bearer" };
  }
  if (status !== 429 && status !== 503) {
    return {};
  }
  const waitMs = failure.retryAt === undefined ? Number.NaN : Date.parse(failure.retryAt) - nowMs;
  const seconds = Number.isNaN(waitMs) ? RETRY_AFTER_DEFAULT_SECONDS : Math.ceil(waitMs / 1_000);
  return { "retry-after": String(Math.min(Math.max(seconds, 1), RETRY_AFTER_SECONDS_MAX)) };
}

/** The failure that anything thrown by a public procedure means. What is not known is INTERNAL and tells nothing. */
export function toFailure(error: unknown): DetailedFailure {
  if (error instanceof ApiFailure) {
    return error.failure;
  }
  if (error instanceof DependencyUnavailable) {
    return localFailure("DEPENDENCY_UNAVAILABLE");
  }
  if (!(error instanceof TRPCError)) {
    return localFailure("INTERNAL");
  }
  if (error.cause instanceof ApiFailure || error.cause instanceof DependencyUnavailable) {
    return toFailure(error.cause);
  }
  switch (error.code) {
    case "BAD_REQUEST":
    case "PARSE_ERROR":
      return error.cause instanceof z.core.$ZodError
        ? { ...localFailure("INVALID_REQUEST"), details: zodDetails(error.cause) }
        : localFailure("INVALID_REQUEST");
    case "NOT_FOUND":
      return localFailure("NOT_FOUND");
    case "METHOD_NOT_SUPPORTED":
      return localFailure("METHOD_NOT_ALLOWED");
    case "UNSUPPORTED_MEDIA_TYPE":
      return localFailure("UNSUPPORTED_MEDIA_TYPE");
    case "PAYLOAD_TOO_LARGE":
      return localFailure("PAYLOAD_TOO_LARGE");
    default:
      return localFailure("INTERNAL");
  }
}

/** A malformed request, with what is wrong at one place. */
export function invalidRequest(path: string, message: string): ApiFailure {
  return new ApiFailure({
    ...localFailure("INVALID_REQUEST"),
    details: [{ path: path.slice(0, 200), message: message.slice(0, 500) }],
  });
}
