/**
 * What a caller sees of a job's state. WAITING is derived when it is read: a job that is not running and due in the
 * future; a job that is due is QUEUED. SUCCEEDED has a result, FAILED a failure, CANCELLED neither; these three never change.
 */
export const JOB_STATUSES = ["QUEUED", "RUNNING", "WAITING", "SUCCEEDED", "FAILED", "CANCELLED"] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

/** The statuses a job never leaves. */
export const TERMINAL_JOB_STATUSES = ["SUCCEEDED", "FAILED", "CANCELLED"] as const satisfies readonly JobStatus[];
export type TerminalJobStatus = (typeof TERMINAL_JOB_STATUSES)[number];

/** Whether a job of this status is finished for good. */
export function isTerminal(status: JobStatus): status is TerminalJobStatus {
  return TERMINAL_JOB_STATUSES.some((terminal) => terminal === status);
}

/** The methods a target can be asked with. */
export const METHODS = ["GET", "HEAD"] as const;
export type Method = (typeof METHODS)[number];

/** How a resource is obtained: one HTTP exchange, or a browser that renders the page. */
export const TRANSPORTS = ["HTTP", "RENDER"] as const;
export type Transport = (typeof TRANSPORTS)[number];

/** The ways out. A job leaves only by routes it names. */
export const ROUTES = ["DIRECT", "DATACENTER", "RESIDENTIAL", "UNLOCKER", "CLOUDFLARE_RENDER", "LOCAL_RENDER"] as const;
export type Route = (typeof ROUTES)[number];

/** The one transport each route serves. */
export const ROUTE_TRANSPORTS = {
  DIRECT: "HTTP",
  DATACENTER: "HTTP",
  RESIDENTIAL: "HTTP",
  UNLOCKER: "HTTP",
  CLOUDFLARE_RENDER: "RENDER",
  LOCAL_RENDER: "RENDER",
} as const satisfies Record<Route, Transport>;

/** The oldest stored answer that will do, by name. */
export const FRESHNESS = ["NO_CACHE", "FIVE_MINUTES", "ONE_HOUR", "ONE_DAY", "SEVEN_DAYS"] as const;
export type Freshness = (typeof FRESHNESS)[number];

/** The same in seconds; 0: no stored answer will do. */
export const FRESHNESS_SECONDS = {
  NO_CACHE: 0,
  FIVE_MINUTES: 300,
  ONE_HOUR: 3_600,
  ONE_DAY: 86_400,
  SEVEN_DAYS: 604_800,
} as const satisfies Record<Freshness, number>;

/** Which answers are successes: final 2xx (304 to a conditional request), or any final status but 429 and 5xx. */
export const ACCEPT = ["SUCCESS_ONLY", "ANY_RESPONSE"] as const;
export type Accept = (typeof ACCEPT)[number];

/** Whether robots.txt is asked first. */
export const ROBOTS = ["RESPECT", "IGNORE"] as const;
export type Robots = (typeof ROBOTS)[number];

/** What a render keeps of a page. */
export const CAPTURES = ["DOM", "SCREENSHOT", "PDF", "MHTML"] as const;
export type Capture = (typeof CAPTURES)[number];

/** How long a job may take from its submit, by name. */
export const DEADLINES = ["ONE_MINUTE", "FIVE_MINUTES", "FIFTEEN_MINUTES", "ONE_HOUR", "SIX_HOURS", "ONE_DAY"] as const;
export type Deadline = (typeof DEADLINES)[number];

/** The same in seconds. */
export const DEADLINE_SECONDS = {
  ONE_MINUTE: 60,
  FIVE_MINUTES: 300,
  FIFTEEN_MINUTES: 900,
  ONE_HOUR: 3_600,
  SIX_HOURS: 21_600,
  ONE_DAY: 86_400,
} as const satisfies Record<Deadline, number>;

/** How an attempt ended. HANDED_BACK is not counted against the budget; LOST means its worker was. */
export const ATTEMPT_OUTCOMES = ["SUCCEEDED", "FAILED", "LOST", "CANCELLED", "HANDED_BACK"] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** The request headers a caller may set, lower-case. Everything else is ours or nobody's. */
export const REQUEST_HEADERS = [
  "accept",
  "accept-language",
  "user-agent",
  "referer",
  "if-none-match",
  "if-modified-since",
] as const;
export type RequestHeader = (typeof REQUEST_HEADERS)[number];
