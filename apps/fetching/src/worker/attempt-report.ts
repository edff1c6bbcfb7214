import type { Failure } from "@keble-scraper/contract";
import type { AttemptReport, StoredBytes } from "@keble-scraper/db/commands/fetching";
import { SHARED_CACHE, type StoredResult } from "@keble-scraper/db";
import type { FetchOutcome } from "@keble-scraper/egress";
import { type CacheTerms, toCacheReport } from "./cache/cache-report.ts";
import { type Revalidation, toRenewedResult } from "./cache/revalidation.ts";
import type { ClaimedJob } from "./claimed-job.ts";
import type { Next } from "./decide-next.ts";
import { costMicros, type Way } from "./way.ts";

/** What every report of an attempt says. */
export type AttemptFacts = {
  readonly job: ClaimedJob;
  readonly attemptId: string;
  readonly way: Way;
  readonly hasReservation: boolean;
  /** Spent waiting for turns, in this process. */
  readonly admissionMs: number;
  /** Null: the job leaves nothing in the cache. */
  readonly caching: CacheTerms | null;
};

type Failed = FetchOutcome & { ok: false; aborted: false };
type Succeeded = FetchOutcome & { ok: true };

/** An attempt that got its answer. `bytes` null: the answer has no body. */
export function succeededReport(facts: AttemptFacts, fetched: Succeeded, bytes: StoredBytes | null): AttemptReport {
  const { response } = fetched;
  const result: Omit<StoredResult, "fetchedAt"> = {
    httpStatus: response.httpStatus,
    finalUrl: response.finalUrl,
    redirects: [...response.redirects],
    headers: toPlainHeaders(response.headers),
    contentType: response.contentType,
    charset: response.charset,
    route: facts.way.route,
    fromCache: false,
  };
  return {
    ...base(facts),
    ...used(facts, fetched),
    outcome: "SUCCEEDED",
    httpStatus: response.httpStatus,
    bodyBytes: response.bodyBytes,
    wireBytes: response.wireBytes,
    result,
    bytes,
    cache: isSuccess(response.httpStatus) && facts.caching !== null ? toCacheReport(facts.caching, response) : null,
  };
}

/** An attempt whose target vouched for the stored answer (304): the job gets it, and the cache keeps it as new. */
export function renewedReport(
  facts: AttemptFacts & { readonly caching: CacheTerms },
  fetched: Succeeded,
  renewal: Revalidation & { readonly artifactId: string },
): AttemptReport {
  const { answer, stored, artifactId } = renewal;
  const result = toRenewedResult(renewal, fetched.response.headers);
  const { caching } = facts;
  const kept = toCacheReport(caching, { ...fetched.response, headers: result.headers });
  // What was fetched as its caller's own stays so: a 304 says nothing of how its bytes came.
  const isShared = kept.isShared && answer.callerId === SHARED_CACHE;
  return {
    ...succeededReport({ ...facts, caching: null }, fetched, null),
    result,
    bytes: stored.bytes === null ? null : { kind: "SEEN", artifactId, ...stored.bytes },
    // A 304 need not repeat its validators (RFC 9110, 15.4.5).
    cache: {
      ...kept,
      isShared,
      marksOwn: caching.mayShare && !isShared,
      etag: kept.etag ?? answer.etag,
      lastModified: kept.lastModified ?? answer.lastModified,
    },
  };
}

function isSuccess(httpStatus: number): boolean {
  return httpStatus >= 200 && httpStatus <= 299;
}

/** An attempt that failed. `evidence`: the refused body, stored. */
export function failedReport(
  facts: AttemptFacts,
  fetched: Failed,
  how: Next & {
    readonly evidence: StoredBytes | null;
    readonly hold: AttemptReport["hold"];
    readonly quarantine: AttemptReport["quarantine"];
  },
): AttemptReport {
  const { evidence, ...next } = how;
  return {
    ...base(facts),
    ...used(facts, fetched),
    outcome: "FAILED",
    httpStatus: fetched.httpStatus,
    failure: fetched.failure,
    bodyBytes: fetched.bodyBytes,
    wireBytes: fetched.wireBytes,
    bytes: evidence,
    ...next,
  };
}

/** An attempt that is not counted: it sent something, and could not go on here. Due again in `waitMs`. */
export function handedBackReport(facts: AttemptFacts, fetched: FetchOutcome, waitMs: number): AttemptReport {
  return {
    ...base(facts),
    ...used(facts, fetched),
    // What it really used may still be on its way: it settles at its reservation.
    costMicros: facts.hasReservation ? null : 0,
    outcome: "HANDED_BACK",
    ...sizesOf(fetched),
    next: "RETRY",
    waitMs,
  };
}

function sizesOf(fetched: FetchOutcome) {
  const { httpStatus, bodyBytes, wireBytes } = fetched.ok ? fetched.response : fetched;
  return { httpStatus, bodyBytes, wireBytes };
}

/** An attempt that was refused here, before anything was sent. */
export function refusedReport(job: ClaimedJob, attemptId: string, failure: Failure): AttemptReport {
  return { ...base({ job, attemptId, hasReservation: false }), outcome: "FAILED", failure };
}

function used({ way, job, admissionMs }: AttemptFacts, { usage, timings }: FetchOutcome) {
  return {
    costMicros: costMicros(way, usage),
    providerRequestId: usage.providerRequestId,
    timings: {
      queueMs: Math.round(job.queueMs),
      admissionMs: Math.round(admissionMs),
      dnsMs: timings.dnsMs,
      connectMs: timings.connectMs,
      ttfbMs: timings.ttfbMs,
      totalMs: timings.totalMs,
    },
  };
}

function base({
  job,
  attemptId,
  hasReservation,
}: Pick<AttemptFacts, "job" | "attemptId" | "hasReservation">): AttemptReport {
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
    hasReservation,
    costMicros: 0,
    providerRequestId: null,
    hold: null,
    quarantine: null,
    cache: null,
  };
}

function toPlainHeaders(headers: Readonly<Record<string, string | readonly string[]>>) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, typeof value === "string" ? value : [...value]]),
  );
}
