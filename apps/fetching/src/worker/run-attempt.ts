import type { Spool, SpooledBody } from "@keble-scraper/artifact-store";
import { type Failure, localFailure } from "@keble-scraper/contract";
import type { AttemptReport, StoredBytes } from "@keble-scraper/db/commands/fetching";
import type { StoredResult } from "@keble-scraper/db";
import { ADMIT_ALL, type AllowedTargets, type FetchOutcome, type Transport, vetUrl } from "@keble-scraper/egress";
import type { RunControl } from "@keble-scraper/service";
import type { AttemptOutcome } from "./attempt-outcome.ts";
import type { ClaimedJob } from "./claimed-job.ts";
import type { Next } from "./decide-next.ts";
import type { StoreBody } from "./store-body.ts";

/** What a run may use. */
export type AttemptParts = {
  readonly transport: Transport;
  readonly spool: Spool;
  readonly storeBody: StoreBody;
  readonly allowedTargets: AllowedTargets;
  readonly attemptLimitMs: number;
  decideNext(failure: Failure, attemptsUsed: number): Next;
  monotonicMs(): number;
  /** A new UUID version 7. */
  createId(): string;
};

/** An attempt that was released is due again no sooner. */
const RELEASE_MS = 1_000;

/**
 * Runs one attempt: vets the target anew, fetches it into the spool, makes the bytes durable. Knows neither queue nor
 * SQL. Throws only for faults (the store is down, the spool is full): its lease then expires by itself.
 */
export async function runAttempt(job: ClaimedJob, control: RunControl, parts: AttemptParts): Promise<AttemptOutcome> {
  if (!mayDispatch(job, control, parts)) return unsent(control);
  const vetted = vetUrl(job.target.url, { allowedTargets: parts.allowedTargets });
  if (!vetted.ok)
    return { kind: "REPORTED", report: refused(job, parts, localFailure("TARGET_FORBIDDEN")), body: null };
  const spooling = parts.spool.open();
  let spooled: SpooledBody | null = null;
  try {
    const fetched = await parts.transport.fetch(
      {
        url: vetted.url,
        method: job.target.method,
        headers: job.target.headers,
        accept: job.accept,
        contentTypes: job.contentTypes,
        maxBodyBytes: job.maxBodyBytes,
        callerId: job.callerId,
        robots: job.robots,
        deadline: job.deadlineAtMs,
        attemptLimitMs: parts.attemptLimitMs,
        capture: "DOM",
        egress: { country: null, session: null },
      },
      spooling,
      { signal: control.signal, admit: ADMIT_ALL },
    );
    if (!fetched.ok && fetched.aborted)
      return fetched.sent ? handedBack(job, control, fetched, parts) : unsent(control);
    if (!fetched.ok) return { kind: "REPORTED", report: failedReport(job, fetched, parts), body: null };
    const { response } = fetched;
    if (!response.hasBody) return { kind: "REPORTED", report: succeededReport(job, fetched, null, parts), body: null };
    spooled = await spooling.finish();
    const placed = await parts.storeBody.place(spooled);
    const bytes: StoredBytes = {
      ...placed,
      sha256: spooled.sha256,
      sizeBytes: spooled.sizeBytes,
      artifactId: parts.createId(),
      contentType: response.contentType.sniffed ?? response.contentType.declared,
      finalUrl: response.finalUrl,
      httpStatus: response.httpStatus,
    };
    const outcome = { kind: "REPORTED" as const, report: succeededReport(job, fetched, bytes, parts), body: spooled };
    spooled = null;
    return outcome;
  } finally {
    await spooled?.discard();
    await spooling.discard();
  }
}

/** Nothing is sent at or after the deadline, nor under a lease that may be somebody else's by now. */
function mayDispatch(job: ClaimedJob, control: RunControl, parts: AttemptParts): boolean {
  return !control.signal.aborted && control.isTrusted() && parts.monotonicMs() < job.deadlineAtMs;
}

/** Of an attempt that sent nothing, the count goes back, unless the lease went first. */
function unsent({ signal }: RunControl): AttemptOutcome {
  return signal.reason === "LEASE_LOST" || signal.reason === "CANCELLED"
    ? { kind: "ABANDONED" }
    : { kind: "RELEASED", dueInMs: RELEASE_MS };
}

function handedBack(
  job: ClaimedJob,
  { signal }: RunControl,
  fetched: FetchOutcome & { ok: false },
  parts: AttemptParts,
): AttemptOutcome {
  if (signal.reason !== "DRAIN") return { kind: "ABANDONED" };
  const report: AttemptReport = {
    ...base(job, parts.createId()),
    outcome: "HANDED_BACK",
    httpStatus: fetched.httpStatus,
    failure: null,
    bodyBytes: fetched.bodyBytes,
    wireBytes: fetched.wireBytes,
    timings: timings(job, fetched),
    next: "RETRY",
  };
  return { kind: "REPORTED", report, body: null };
}

function failedReport(
  job: ClaimedJob,
  fetched: FetchOutcome & { ok: false; aborted: false },
  parts: AttemptParts,
): AttemptReport {
  return {
    ...base(job, parts.createId()),
    outcome: "FAILED",
    httpStatus: fetched.httpStatus,
    failure: fetched.failure,
    bodyBytes: fetched.bodyBytes,
    wireBytes: fetched.wireBytes,
    timings: timings(job, fetched),
    ...parts.decideNext(fetched.failure, job.attemptsUsed),
  };
}

function refused(job: ClaimedJob, parts: AttemptParts, failure: Failure): AttemptReport {
  return { ...base(job, parts.createId()), outcome: "FAILED", failure };
}

function succeededReport(
  job: ClaimedJob,
  fetched: FetchOutcome & { ok: true },
  bytes: StoredBytes | null,
  parts: AttemptParts,
): AttemptReport {
  const { response } = fetched;
  const result: Omit<StoredResult, "fetchedAt"> = {
    httpStatus: response.httpStatus,
    finalUrl: response.finalUrl,
    redirects: [...response.redirects],
    headers: toPlainHeaders(response.headers),
    contentType: response.contentType,
    charset: response.charset,
    route: "DIRECT",
    fromCache: false,
  };
  return {
    ...base(job, parts.createId()),
    outcome: "SUCCEEDED",
    httpStatus: response.httpStatus,
    bodyBytes: response.bodyBytes,
    wireBytes: response.wireBytes,
    timings: timings(job, fetched),
    result,
    bytes,
  };
}

function toPlainHeaders(headers: Readonly<Record<string, string | readonly string[]>>) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, typeof value === "string" ? value : [...value]]),
  );
}

function base(job: ClaimedJob, attemptId: string): AttemptReport {
  return {
    id: job.id,
    token: job.token,
    attemptId,
    outcome: "FAILED",
    httpStatus: null,
    failure: null,
    retryAfterMs: null,
    bodyBytes: 0,
    wireBytes: 0,
    timings: { queueMs: Math.round(job.queueMs) },
    result: null,
    bytes: null,
    next: "FINISH",
    waitMs: 0,
  };
}

function timings(job: ClaimedJob, { timings: measured }: FetchOutcome): AttemptReport["timings"] {
  return {
    queueMs: Math.round(job.queueMs),
    admissionMs: 0,
    dnsMs: measured.dnsMs,
    connectMs: measured.connectMs,
    ttfbMs: measured.ttfbMs,
    totalMs: measured.totalMs,
  };
}
