import type {
  Artifact,
  Attempt,
  Budget,
  CallbackEndpoint,
  CallbackEventDetail,
  Download,
  Job,
  RouteInfo,
  Stats,
  Usage,
} from "@keble-scraper/contract";

export const ID = "01978b3c-7a00-7000-8000-000000000001";
export const OTHER_ID = "01978b3c-7a00-7000-8000-000000000002";
const AT = "2026-11-30T17:00:00.000Z";
const SHA = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

export const QUEUED: Job = {
  id: ID,
  callerId: "acme",
  status: "QUEUED",
  target: { url: "https://a.example/", method: "GET", headers: {} },
  transport: "HTTP",
  routes: ["DIRECT"],
  freshness: "NO_CACHE",
  accept: "SUCCESS_ONLY",
  robots: "RESPECT",
  limits: { attemptBudget: 3, attemptsUsed: 0, deadlineAt: AT, maxBodyBytes: 1, costCapMicros: 0, costMicros: 0 },
  result: null,
  failure: null,
  callback: { endpoint: "orders", eventId: null, state: "PENDING" },
  labels: {},
  createdAt: AT,
  dueAt: AT,
  finishedAt: null,
};

export const DONE: Job = {
  ...QUEUED,
  status: "SUCCEEDED",
  callback: null,
  finishedAt: AT,
  result: {
    httpStatus: 200,
    finalUrl: "https://a.example/",
    redirects: [],
    headers: { "content-type": "text/html", "set-cookie": ["a=1", "b=2"] },
    contentType: { declared: "text/html", sniffed: "text/html" },
    charset: { declared: null, detected: "utf-8" },
    artifactId: OTHER_ID,
    sha256: SHA,
    sizeBytes: 0,
    route: "DIRECT",
    fetchedAt: AT,
    fromCache: false,
  },
};

export const ATTEMPT: Attempt = {
  id: OTHER_ID,
  ordinal: 1,
  route: "DIRECT",
  startedAt: AT,
  finishedAt: AT,
  outcome: "SUCCEEDED",
  httpStatus: 200,
  failure: null,
  bodyBytes: 1,
  wireBytes: 1,
  timings: { queueMs: 1, admissionMs: 0, dnsMs: null, connectMs: 1, ttfbMs: 1, totalMs: 3 },
  costReservedMicros: 0,
  costMicros: 0,
  providerRequestId: null,
  evidenceArtifactId: null,
};

export const ARTIFACT: Artifact = {
  id: OTHER_ID,
  sha256: SHA,
  sizeBytes: 0,
  contentType: "text/html",
  sourceUrl: "https://a.example/",
  finalUrl: "https://a.example/",
  httpStatus: 200,
  fetchedAt: AT,
  createdAt: AT,
  state: "AVAILABLE",
};

export const DOWNLOAD: Download = {
  url: "http://127.0.0.1:9/blob?x-keble-audit-id=1&signature=2",
  auditId: ID,
  expiresAt: AT,
  sha256: SHA,
  sizeBytes: 0,
};

export const ENDPOINT: CallbackEndpoint = {
  id: ID,
  callerId: "acme",
  name: "orders",
  url: "https://receiver.example/",
  enabled: true,
  disabledReason: null,
  events: ["job.succeeded", "job.failed", "job.cancelled"],
  attemptBudget: 10,
  timeoutMs: 15_000,
  maxConcurrency: 4,
  ratePerSecond: null,
  createdAt: AT,
};

export const EVENT: CallbackEventDetail = {
  id: ID,
  callerId: "acme",
  jobId: OTHER_ID,
  endpointId: ID,
  endpoint: "orders",
  type: "job.succeeded",
  state: "PENDING",
  deadLetterReason: null,
  occurredAt: AT,
  createdAt: AT,
  finishedAt: null,
  deliveries: [],
};

export const ROUTE_INFO: RouteInfo = {
  route: "UNLOCKER",
  transport: "HTTP",
  available: false,
  reason: "quarantined until it is released",
  health: "QUARANTINED",
  quarantine: { reason: "OPERATOR", nativeCode: null, note: "the bill", by: ID, since: AT, until: null },
  requestsPerSecond: 10,
  concurrency: null,
  inFlight: 2,
  price: { unit: "PER_REQUEST", micros: 1_500, source: "https://supplier.example/pricing", asOf: "2026-05-25" },
  spend: {
    day: { settledMicros: 3_000, reservedMicros: 1_500, capMicros: 10_000 },
    month: { settledMicros: 3_000, reservedMicros: 1_500, capMicros: null },
  },
};

export const BUDGET: Budget = {
  scope: "ROUTE",
  name: "UNLOCKER",
  period: "DAY",
  startsOn: "2026-11-30",
  capMicros: 10_000,
  settledMicros: 3_000,
  reservedMicros: 1_500,
  overrunMicros: 0,
};

const SUMS = { attempts: 2, succeeded: 1, failed: 0, bodyBytes: 10, wireBytes: 12, costMicros: 3_000 };

const NONE = { count: 0, isLowerBound: false, oldestSeconds: null };
const KIND = { purged: 0, backlog: NONE };
export const STATS: Stats = {
  observedAt: AT,
  openJobs: {
    queued: { count: 100_000, isLowerBound: true },
    waiting: { count: 1, isLowerBound: false },
    running: { count: 2, isLowerBound: false },
  },
  due: { count: 100_000, isLowerBound: true, oldestSeconds: 12.5 },
  callbacks: { due: NONE, deadLetters: { count: 3, isLowerBound: false, oldestSeconds: 86_400 } },
  endedByHour: [{ hour: AT, succeeded: 10, failed: 2, cancelled: 1, isLowerBound: false }],
  purge: {
    rowsPerMinute: 1_000,
    kinds: {
      events: KIND,
      jobs: { purged: 1_000, backlog: { count: 7, isLowerBound: false, oldestSeconds: 60 } },
      cache: KIND,
      flights: KIND,
      tombstones: KIND,
      findings: KIND,
      budgets: KIND,
      audit: KIND,
    },
  },
  store: {
    artifactsToReview: NONE,
    objectsToDelete: NONE,
    findings: {
      missing: { count: 1, isLowerBound: false },
      damaged: { count: 0, isLowerBound: false },
      orphans: { count: 0, isLowerBound: false },
    },
    lastListingEndedAt: null,
  },
};

export const USAGE: Usage = {
  from: "2026-11-29T17:00:00.000Z",
  to: AT,
  groupBy: "route",
  items: [{ route: "UNLOCKER", ...SUMS }],
  total: SUMS,
};
