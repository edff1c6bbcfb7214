import { createTestDatabase } from "@keble-scraper/testkit";
import postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import {
  claimJobs,
  type AttemptReport,
  type CostCaps,
  type CostVerdict,
  type JobLease,
  reserveCost,
} from "../src/commands/fetching/index.ts";
import { type NewJob, submitJobs } from "../src/commands/intake/index.ts";
import { type Database, createDatabase } from "../src/database.ts";
import { migrate } from "../src/migrate.ts";

/** A migrated database of its own, with the pools of an app role. */
export async function openTestDatabase(): Promise<
  Database & AsyncDisposable & { readonly migrationUrl: string; readonly url: string }
> {
  const database = await createTestDatabase({ migrate });
  const pools = createDatabase({
    url: database.url,
    applicationName: "test",
    commandConnections: 8,
    readConnections: 2,
    statementTimeoutMs: 20_000,
  });
  return {
    ...pools,
    url: database.url,
    migrationUrl: database.migrationUrl,
    async [Symbol.asyncDispose]() {
      await pools.stop(performance.now() + 1_000);
      await database[Symbol.asyncDispose]();
    },
  };
}

/** Retention and grace as the defaults have them. */
export const OPTIONS = { jobRetentionMs: 90 * 86_400_000, abortGraceMs: 2_000 };

/** A job with the defaults of the API. */
export function newJob(overrides: Partial<NewJob> = {}): NewJob {
  return {
    id: uuidv7(),
    idempotencyKey: null,
    requestSha256: "00".repeat(32),
    hostKey: "127.0.0.1",
    capture: null,
    egress: null,
    target: { url: "https://shop.example.com/p/1", method: "GET", headers: {} },
    transport: "HTTP",
    routes: ["DIRECT"],
    freshness: "NO_CACHE",
    accept: "SUCCESS_ONLY",
    contentTypes: null,
    robots: "RESPECT",
    labels: {},
    attemptBudget: 3,
    maxBodyBytes: 1_000_000,
    costCapMicros: 0,
    deadlineSeconds: 300,
    callbackEndpoint: null,
    ...overrides,
  };
}

/** Submits one job and returns its id. */
export async function submitOne(
  database: Database,
  overrides: Partial<NewJob> = {},
  callerId = "acme",
): Promise<string> {
  const [verdict] = await submitJobs(database.commands, { callerId, jobs: [newJob(overrides)], queuedMax: null });
  if (verdict?.kind !== "ACCEPTED") throw new Error(`not accepted: ${verdict?.kind ?? "nothing"}`);
  return verdict.id;
}

/** Claims up to `slots` trusted HTTP jobs from the start of the ring. */
export async function claim(
  database: Database,
  slots = 50,
  overrides: Partial<Parameters<typeof claimJobs>[1]> = {},
): Promise<JobLease[]> {
  const { leases } = await claimJobs(database.commands, {
    transport: "HTTP",
    slots,
    leaseSeconds: 60,
    afterCaller: "",
    of: "TRUSTED",
    callerRunningMax: null,
    ...overrides,
  });
  return [...leases];
}

/** Claims exactly one job. Due times are rounded up to the millisecond, so one that is due now may be so in a moment. */
export async function claimOne(
  database: Database,
  overrides: Partial<Parameters<typeof claimJobs>[1]> = {},
): Promise<JobLease> {
  const until = performance.now() + 50;
  for (;;) {
    const [lease] = await claim(database, 1, overrides);
    if (lease !== undefined) return lease;
    if (performance.now() > until) throw new Error("nothing to claim");
  }
}

/** A report of a success whose bytes were put as `generation`. */
export function succeeded(lease: JobLease, sha256 = "ab".repeat(32), generation: string = uuidv7()): AttemptReport {
  return {
    id: lease.id,
    token: lease.token,
    attemptId: uuidv7(),
    outcome: "SUCCEEDED",
    httpStatus: 200,
    failure: null,
    retryAfterMs: null,
    bodyBytes: 5,
    wireBytes: 5,
    timings: { queueMs: 1, totalMs: 2 },
    result: { httpStatus: 200, finalUrl: "https://shop.example.com/p/1" },
    bytes: {
      kind: "PUT",
      blobId: uuidv7(),
      generation,
      sha256,
      sizeBytes: 5,
      artifactId: uuidv7(),
      contentType: "text/html",
      finalUrl: "https://shop.example.com/p/1",
      httpStatus: 200,
    },
    next: "FINISH",
    waitMs: 0,
    hasReservation: false,
    costMicros: 0,
    providerRequestId: null,
    hold: null,
    quarantine: null,
  };
}

/** A report of a failure that asks to be tried again. */
export function failedRetryably(lease: JobLease, overrides: Partial<AttemptReport> = {}): AttemptReport {
  return {
    ...succeeded(lease),
    outcome: "FAILED",
    httpStatus: 503,
    failure: {
      kind: "UPSTREAM",
      origin: "TARGET",
      code: "HTTP_SERVER_ERROR",
      disposition: "RETRY",
      action: "NONE",
      message: "The target failed.",
    },
    result: null,
    bytes: null,
    next: "RETRY",
    ...overrides,
  };
}

/** No cap but the job's own. */
export const NO_CAPS: CostCaps = { routeDay: null, routeMonth: null, callerDay: null, callerMonth: null };

/** A job that may spend a dollar by DATACENTER. */
export const PAID = { routes: ["DATACENTER"], costCapMicros: 1_000_000 };

/** Reserves for the route of a lease. */
export function reserve(
  database: Database,
  lease: Pick<JobLease, "id" | "token" | "route">,
  micros: number,
  caps: Partial<CostCaps> = {},
): Promise<CostVerdict> {
  const { id, token, route } = lease;
  return reserveCost(database.commands, { id, token, route, micros, caps: { ...NO_CAPS, ...caps } });
}

/** Moves a job's deadline `ms` into the past, as only the owner can: nothing the product does changes a deadline. */
export async function passDeadline(database: { readonly migrationUrl: string }, id: string, ms: number): Promise<void> {
  const owner = postgres(database.migrationUrl, { max: 1, onnotice: () => undefined });
  try {
    await owner.begin(async (tx) => {
      await tx`alter table jobs disable trigger jobs_hold_terms`;
      await tx`update jobs set deadline_at = clock_timestamp() - make_interval(secs => ${ms / 1_000}) where id = ${id}`;
      await tx`alter table jobs enable trigger jobs_hold_terms`;
    });
  } finally {
    await owner.end({ timeout: 1 });
  }
}
