import { errnoOf, StoreUnavailable } from "../store-unavailable.ts";

/** What a service answered: its own code, or `HTTP_<status>` where it named none, as answers to HEAD never do. */
export type S3Answer = { readonly code: string; readonly status: number };

const CODE = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/u;
/** What the SDK calls an answer that names no code. */
const NAMELESS = new Set(["Error", "Unknown", "UnknownError", "UnknownException", "S3ServiceException"]);

/** What a service answered, or null for an error that is no refusal of a service's. */
export function answerOf(error: unknown): S3Answer | null {
  if (!(error instanceof Error)) return null;
  const { $metadata } = error as { readonly $metadata?: { readonly httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode;
  if (status === undefined || status < 300) return null;
  return { code: CODE.test(error.name) && !NAMELESS.has(error.name) ? error.name : `HTTP_${String(status)}`, status };
}

/**
 * Any error of a call to the service as `StoreUnavailable`: with the service's code, the operating system's, or a name
 * of ours (TIMEOUT, ABORTED, BAD_ANSWER, HTTP_<status>). A bug of ours stays what it is. The SDK's error is not kept as the
 * cause: it holds the request, its signature and the key id.
 */
export function toS3Fault(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof StoreUnavailable) return error;
  const errno = errnoOf(error);
  if (errno !== null) return new StoreUnavailable(errno);
  const answer = answerOf(error);
  if (answer !== null) return new StoreUnavailable(answer.code);
  // Connections that break above the system call: "socket hang up", TLS, HTTP framing.
  const { code } = error as { readonly code?: unknown };
  if (typeof code === "string" && CODE.test(code)) return new StoreUnavailable(code);
  if (error.name === "TimeoutError") return new StoreUnavailable("TIMEOUT");
  if (error.name === "AbortError") return new StoreUnavailable("ABORTED");
  return "$response" in error ? new StoreUnavailable("BAD_ANSWER") : error;
}
