/** What a caller, a retry loop or an operator should do next about a failure. `RETRY_AT` needs a `retryAt`. */
export const DISPOSITIONS = ["RETRY", "RETRY_NEXT_ROUTE", "RETRY_AT", "TERMINAL"] as const;
export type Disposition = (typeof DISPOSITIONS)[number];

/** Where a failure that is ours comes from. */
export const LOCAL_ORIGINS = ["CALLER_AUTH", "REQUEST_POLICY", "RUNTIME", "CAPACITY", "OPERATOR"] as const;
export type LocalOrigin = (typeof LOCAL_ORIGINS)[number];

/** Where a failure that somebody else caused comes from. */
export const UPSTREAM_ORIGINS = ["TARGET", "PAID_EGRESS", "BROWSER_PROVIDER"] as const;
export type UpstreamOrigin = (typeof UPSTREAM_ORIGINS)[number];

/** What would mend an upstream failure. */
export const ACTIONS = [
  "NONE",
  "ROTATE_SESSION",
  "QUARANTINE_ROUTE",
  "FIX_CREDENTIALS",
  "PAY_SUPPLIER",
  "CHANGE_REQUEST",
  "WAIT",
] as const;
export type Action = (typeof ACTIONS)[number];

type LocalRow = {
  readonly origin: LocalOrigin;
  readonly disposition: Disposition;
  readonly httpStatus: number;
  readonly text: string;
  readonly help: string;
};
type UpstreamRow = {
  readonly origin: UpstreamOrigin;
  readonly disposition: Disposition;
  readonly action: Action;
  readonly httpStatus: number;
  readonly text: string;
  readonly help: string;
};
type FailureTable = {
  readonly LOCAL: Readonly<Record<string, LocalRow>>;
  readonly UPSTREAM: Readonly<Record<string, UpstreamRow>>;
};

/**
 * The one table of failures: kind -> code -> defaults. Envelope, retry, docs and console read it; nothing else maps
 * codes. `httpStatus` is our envelope's status, never the target's. `text` is safe to show: it names no host, address or
 * secret. A classifier may override origin, disposition and action with members of the closed sets above.
 */
export const FAILURES = {
  LOCAL: {
    INVALID_REQUEST: {
      origin: "REQUEST_POLICY",
      disposition: "TERMINAL",
      httpStatus: 400,
      text: "The request is malformed.",
      help: "Mend the fields named in `details` and send it again.",
    },
    UNAUTHENTICATED: {
      origin: "CALLER_AUTH",
      disposition: "TERMINAL",
      httpStatus: 401,
      text: "No valid API key was given.",
      help: "Send `Authorization: Bearer <api key>` with a key that has not expired or been revoked.",
    },
    FORBIDDEN: {
      origin: "CALLER_AUTH",
      disposition: "TERMINAL",
      httpStatus: 403,
      text: "This key may not do that.",
      help: "Use a key with the scope that `details` names.",
    },
    NOT_FOUND: {
      origin: "REQUEST_POLICY",
      disposition: "TERMINAL",
      httpStatus: 404,
      text: "There is no such resource.",
      help: "Check the path and the id; a service key sees its own caller's rows only.",
    },
    METHOD_NOT_ALLOWED: {
      origin: "REQUEST_POLICY",
      disposition: "TERMINAL",
      httpStatus: 405,
      text: "The resource does not answer this method.",
      help: "Use a method that the `Allow` header lists.",
    },
    CONFLICT: {
      origin: "REQUEST_POLICY",
      disposition: "TERMINAL",
      httpStatus: 409,
      text: "The resource's state does not allow that.",
      help: "Read the resource and decide again.",
    },
    GONE: {
      origin: "REQUEST_POLICY",
      disposition: "TERMINAL",
      httpStatus: 410,
      text: "The bytes have been deleted.",
      help: "Submit the job again to fetch them anew.",
    },
    PAYLOAD_TOO_LARGE: {
      origin: "REQUEST_POLICY",
      disposition: "TERMINAL",
      httpStatus: 413,
      text: "The request body is too large.",
      help: "Keep bodies under 256 KiB, batches under 4 MiB.",
    },
    UNSUPPORTED_MEDIA_TYPE: {
      origin: "REQUEST_POLICY",
      disposition: "TERMINAL",
      httpStatus: 415,
      text: "The request body is not JSON.",
      help: "Send `Content-Type: application/json`.",
    },
    TARGET_FORBIDDEN: {
      origin: "REQUEST_POLICY",
      disposition: "TERMINAL",
      httpStatus: 422,
      text: "The target may not be fetched.",
      help: "Only public http and https resources in their plain spelling are fetched.",
    },
    ROBOTS_DISALLOWED: {
      origin: "REQUEST_POLICY",
      disposition: "TERMINAL",
      httpStatus: 422,
      text: "The site's robots.txt disallows this resource.",
      help: "Fetch something else, or set `robots` to IGNORE where you have the right to.",
    },
    IDEMPOTENCY_MISMATCH: {
      origin: "REQUEST_POLICY",
      disposition: "TERMINAL",
      httpStatus: 409,
      text: "This idempotency key was used with another body.",
      help: "Use a new key for a new request.",
    },
    RATE_LIMITED: {
      origin: "CAPACITY",
      disposition: "RETRY_AT",
      httpStatus: 429,
      text: "Too many requests.",
      help: "Wait as long as `Retry-After` says.",
    },
    QUEUE_FULL: {
      origin: "CAPACITY",
      disposition: "RETRY_AT",
      httpStatus: 429,
      text: "Too many of this caller's jobs are waiting.",
      help: "Wait as long as `Retry-After` says, or ask the operator for a longer queue.",
    },
    DEADLINE_EXCEEDED: {
      origin: "CAPACITY",
      disposition: "TERMINAL",
      httpStatus: 422,
      text: "The job's deadline passed.",
      help: "Submit again with a later deadline.",
    },
    COST_CAP_EXCEEDED: {
      origin: "REQUEST_POLICY",
      disposition: "RETRY_NEXT_ROUTE",
      httpStatus: 422,
      text: "The next attempt would cost more than a cap allows.",
      help: "Raise the cap, or list a cheaper route.",
    },
    ROUTE_CAPACITY: {
      origin: "CAPACITY",
      disposition: "RETRY",
      httpStatus: 503,
      text: "The route is busy.",
      help: "Nothing: the job waits and keeps its attempt.",
    },
    ROUTE_UNAVAILABLE: {
      origin: "REQUEST_POLICY",
      disposition: "TERMINAL",
      httpStatus: 422,
      text: "A route is not available.",
      help: "List one of the routes that `details` names.",
    },
    UNKNOWN_CALLBACK_ENDPOINT: {
      origin: "REQUEST_POLICY",
      disposition: "TERMINAL",
      httpStatus: 422,
      text: "There is no callback endpoint of that name.",
      help: "Register the endpoint first.",
    },
    NOT_SUPPORTED: {
      origin: "REQUEST_POLICY",
      disposition: "TERMINAL",
      httpStatus: 422,
      text: "This deployment does not support a field of the request.",
      help: "Leave out the fields that `details` names.",
    },
    WORKER_LOST: {
      origin: "RUNTIME",
      disposition: "RETRY",
      httpStatus: 500,
      text: "The worker that ran the attempt was lost.",
      help: "Nothing: the job is tried again within its budget.",
    },
    DEPENDENCY_UNAVAILABLE: {
      origin: "RUNTIME",
      disposition: "RETRY",
      httpStatus: 503,
      text: "A part of the service is not available.",
      help: "Try again after `Retry-After`.",
    },
    INTERNAL: {
      origin: "RUNTIME",
      disposition: "RETRY",
      httpStatus: 500,
      text: "Something went wrong on our side.",
      help: "Try again; give the request id when you report it.",
    },
  },
  UPSTREAM: {
    DNS_FAILURE: {
      origin: "TARGET",
      disposition: "RETRY",
      action: "NONE",
      httpStatus: 502,
      text: "The target's name could not be resolved.",
      help: "Check the host name.",
    },
    CONNECT_FAILURE: {
      origin: "TARGET",
      disposition: "RETRY",
      action: "NONE",
      httpStatus: 502,
      text: "The target refused the connection.",
      help: "Check that the site is up.",
    },
    CONNECT_TIMEOUT: {
      origin: "TARGET",
      disposition: "RETRY",
      action: "NONE",
      httpStatus: 504,
      text: "The target did not accept a connection in time.",
      help: "Check that the site is up.",
    },
    TLS_FAILURE: {
      origin: "TARGET",
      disposition: "TERMINAL",
      action: "CHANGE_REQUEST",
      httpStatus: 502,
      text: "No trusted TLS connection could be made.",
      help: "Check the site's certificate and protocol versions.",
    },
    RESPONSE_TIMEOUT: {
      origin: "TARGET",
      disposition: "RETRY",
      action: "NONE",
      httpStatus: 504,
      text: "The target did not answer in time.",
      help: "Try a later moment.",
    },
    BODY_TIMEOUT: {
      origin: "TARGET",
      disposition: "RETRY",
      action: "NONE",
      httpStatus: 504,
      text: "The target stopped sending.",
      help: "Try a later moment.",
    },
    CONNECTION_RESET: {
      origin: "TARGET",
      disposition: "RETRY",
      action: "NONE",
      httpStatus: 502,
      text: "The target closed the connection without an answer.",
      help: "Try a later moment.",
    },
    MALFORMED_RESPONSE: {
      origin: "TARGET",
      disposition: "TERMINAL",
      action: "CHANGE_REQUEST",
      httpStatus: 502,
      text: "The target's answer is not valid HTTP.",
      help: "The site has to mend it.",
    },
    HEADERS_TOO_LARGE: {
      origin: "TARGET",
      disposition: "TERMINAL",
      action: "CHANGE_REQUEST",
      httpStatus: 502,
      text: "The target's response headers are too large.",
      help: "At most 16 KiB and 200 lines are read.",
    },
    TRUNCATED_BODY: {
      origin: "TARGET",
      disposition: "RETRY",
      action: "NONE",
      httpStatus: 502,
      text: "The body ended before its end.",
      help: "Try a later moment.",
    },
    BODY_TOO_LARGE: {
      origin: "TARGET",
      disposition: "TERMINAL",
      action: "CHANGE_REQUEST",
      httpStatus: 502,
      text: "The body is larger than the job allows.",
      help: "Raise `limits.maxBodyBytes`.",
    },
    DECODING_FAILED: {
      origin: "TARGET",
      disposition: "TERMINAL",
      action: "CHANGE_REQUEST",
      httpStatus: 502,
      text: "The body's content coding is broken or unknown.",
      help: "gzip, br and deflate are decoded, at most three deep.",
    },
    UNWANTED_CONTENT_TYPE: {
      origin: "TARGET",
      disposition: "TERMINAL",
      action: "CHANGE_REQUEST",
      httpStatus: 502,
      text: "The declared content type is not one the job accepts.",
      help: "Widen `contentTypes`.",
    },
    TOO_MANY_REDIRECTS: {
      origin: "TARGET",
      disposition: "TERMINAL",
      action: "CHANGE_REQUEST",
      httpStatus: 502,
      text: "The target redirects in a loop or too often.",
      help: "At most five redirects are followed.",
    },
    REDIRECT_FORBIDDEN: {
      origin: "TARGET",
      disposition: "TERMINAL",
      action: "CHANGE_REQUEST",
      httpStatus: 502,
      text: "The target redirects to something that may not be fetched.",
      help: "Only public http and https resources are followed.",
    },
    UNACCEPTABLE_STATUS: {
      origin: "TARGET",
      disposition: "TERMINAL",
      action: "CHANGE_REQUEST",
      httpStatus: 502,
      text: "The target's status is not one the job accepts.",
      help: "Set `accept` to ANY_RESPONSE to keep such answers.",
    },
    HTTP_CLIENT_ERROR: {
      origin: "TARGET",
      disposition: "TERMINAL",
      action: "CHANGE_REQUEST",
      httpStatus: 502,
      text: "The target refused the request.",
      help: "Set `accept` to ANY_RESPONSE to keep such answers.",
    },
    NOT_FOUND: {
      origin: "TARGET",
      disposition: "TERMINAL",
      action: "CHANGE_REQUEST",
      httpStatus: 502,
      text: "The target has no such resource.",
      help: "Check the URL.",
    },
    HTTP_SERVER_ERROR: {
      origin: "TARGET",
      disposition: "RETRY",
      action: "NONE",
      httpStatus: 502,
      text: "The target failed.",
      help: "Try a later moment.",
    },
    RATE_LIMITED: {
      origin: "TARGET",
      disposition: "RETRY",
      action: "WAIT",
      httpStatus: 502,
      text: "The target asked for fewer requests.",
      help: "Send fewer jobs for this host.",
    },
    BLOCKED: {
      origin: "TARGET",
      disposition: "RETRY_NEXT_ROUTE",
      action: "ROTATE_SESSION",
      httpStatus: 502,
      text: "The target answered with a block page.",
      help: "List another route.",
    },
    PROXY_FAILURE: {
      origin: "PAID_EGRESS",
      disposition: "RETRY",
      action: "NONE",
      httpStatus: 502,
      text: "The proxy failed.",
      help: "Nothing: the job is tried again within its budget.",
    },
    PROVIDER_AUTH: {
      origin: "PAID_EGRESS",
      disposition: "RETRY_NEXT_ROUTE",
      action: "FIX_CREDENTIALS",
      httpStatus: 502,
      text: "The provider refused our credentials.",
      help: "An operator has to mend the route's credentials.",
    },
    PROVIDER_PAYMENT: {
      origin: "PAID_EGRESS",
      disposition: "RETRY_NEXT_ROUTE",
      action: "PAY_SUPPLIER",
      httpStatus: 502,
      text: "The provider's account is not paid.",
      help: "An operator has to pay the supplier.",
    },
    PROVIDER_QUOTA: {
      origin: "PAID_EGRESS",
      disposition: "RETRY_NEXT_ROUTE",
      action: "QUARANTINE_ROUTE",
      httpStatus: 502,
      text: "The provider's quota is used up.",
      help: "Wait for the quota's next period, or raise it.",
    },
    PROVIDER_CAPACITY: {
      origin: "PAID_EGRESS",
      disposition: "RETRY",
      action: "WAIT",
      httpStatus: 502,
      text: "The provider is busy.",
      help: "Nothing: the job is tried again within its budget.",
    },
    PROVIDER_POLICY: {
      origin: "PAID_EGRESS",
      disposition: "RETRY_NEXT_ROUTE",
      action: "CHANGE_REQUEST",
      httpStatus: 502,
      text: "The provider does not allow this target.",
      help: "List another route.",
    },
    PROVIDER_FAILURE: {
      origin: "PAID_EGRESS",
      disposition: "RETRY",
      action: "NONE",
      httpStatus: 502,
      text: "The provider failed.",
      help: "Nothing: the job is tried again within its budget.",
    },
    RENDER_FAILED: {
      origin: "BROWSER_PROVIDER",
      disposition: "RETRY",
      action: "NONE",
      httpStatus: 502,
      text: "The page could not be rendered.",
      help: "Try a later moment.",
    },
  },
} as const satisfies FailureTable;

export type LocalCode = keyof typeof FAILURES.LOCAL;
export type UpstreamCode = keyof typeof FAILURES.UPSTREAM;
export const LOCAL_CODES = Object.keys(FAILURES.LOCAL) as [LocalCode, ...LocalCode[]];
export const UPSTREAM_CODES = Object.keys(FAILURES.UPSTREAM) as [UpstreamCode, ...UpstreamCode[]];
