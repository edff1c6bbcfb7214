import type { Spool, SpooledBody } from "@keble-scraper/artifact-store";
import { type Failure, type LocalFailure, localFailure } from "@keble-scraper/contract";
import { type AllowedTargets, type FetchOutcome, type VettedUrl, vetUrl } from "@keble-scraper/egress";
import type { RunControl } from "@keble-scraper/service";
import type { JobAdmission } from "../admission/admission.ts";
import { type AttemptOutcome, releaseSoon } from "./attempt-outcome.ts";
import {
  type AttemptFacts,
  failedReport,
  handedBackReport,
  refusedReport,
  renewedReport,
  succeededReport,
} from "./attempt-report.ts";
import type { CacheAdvice } from "./cache/consult-cache.ts";
import type { JobCache } from "./cache/job-cache.ts";
import { canRevalidate, isVouchedFor, type Revalidation, toConditions } from "./cache/revalidation.ts";
import type { ClaimedJob } from "./claimed-job.ts";
import type { Next } from "./decide-next.ts";
import type { KeepEvidence } from "./keep-evidence.ts";
import type { Lessons } from "./lessons.ts";
import type { ReserveMoney } from "./reserve-money.ts";
import type { Sessions } from "./sessions.ts";
import type { StoreBody } from "./store-body.ts";
import { unlessDrained } from "./unless-drained.ts";
import type { UntilStored } from "./until-stored.ts";
import { costMicros, type Way, type Ways } from "./way.ts";

/** What a run may use. */
export type AttemptParts = {
  readonly ways: Ways;
  readonly spool: Spool;
  readonly storeBody: StoreBody;
  readonly untilStored: UntilStored;
  readonly keepEvidence: KeepEvidence;
  readonly allowedTargets: AllowedTargets;
  readonly reserveMoney: ReserveMoney;
  readonly cache: JobCache;
  readonly lessons: Lessons;
  readonly sessions: Sessions;
  admissionFor(job: ClaimedJob, way: Way): JobAdmission;
  decideNext(failure: Failure, attemptsUsed: number): Next;
  monotonicMs(): number;
  random(): number;
  /** A new UUID version 7. */
  createId(): string;
};

/** How soon a job asks again for money that is out with running attempts: this, and up to as much again. */
const CAPACITY_MS = 1_500;
/** How soon it asks again whether its own route, which is quarantined, is back. */
const QUARANTINED_MS = 15_000;

/**
 * Runs one attempt: vets the target anew, takes a stored answer where the job wants one, else reserves what it may cost, fetches
 * it into the spool by the claim's route, makes the bytes durable. Knows neither queue nor SQL. Throws only for faults (the store
 * is down, the spool is full, a browser died): its lease then expires by itself.
 */
export async function runAttempt(job: ClaimedJob, control: RunControl, parts: AttemptParts): Promise<AttemptOutcome> {
  if (!mayDispatch(job, control, parts)) return unsent(control);
  const vetted = vetUrl(job.target.url, { allowedTargets: parts.allowedTargets });
  if (!vetted.ok) {
    const report = refusedReport(job, parts.createId(), localFailure("TARGET_FORBIDDEN"));
    return { kind: "REPORTED", report, body: null };
  }
  const advice = await consult(job, control, parts);
  if (advice?.kind === "TAKEN") return advice;
  if (advice?.kind === "STALE") return unsent(control);
  if (advice?.kind === "WAIT") {
    return releaseSoon({ dueInMs: advice.ms, waitsForFlight: true });
  }
  const way = parts.ways.get(job.route);
  // The route was configured at submit and is not any more.
  if (way === undefined) {
    return closed(job, localFailure("ROUTE_UNAVAILABLE", { disposition: "TERMINAL" }), parts);
  }
  if (parts.lessons.isShut(job.route)) return releaseSoon();
  const money = await parts.reserveMoney(job, way, control);
  if (money === "STALE") return unsent(control);
  if (money === "CAPACITY") return releaseSoon({ dueInMs: CAPACITY_MS * (1 + parts.random()) });
  if (money === "CAP_EXCEEDED") return closed(job, localFailure("COST_CAP_EXCEEDED"), parts);
  const caching = advice?.terms ?? null;
  const facts = { job, attemptId: parts.createId(), way, hasReservation: money === "RESERVED", caching };
  const stale = advice?.stale ?? null;
  const stored = stale === null || !canRevalidate(stale, way.route) ? null : await parts.cache.load(stale);
  const again = stale === null || stored === null ? null : { answer: stale, stored };
  return dispatch(vetted.url, { facts, again }, control, parts);
}

/** Null: the job takes and leaves nothing in the cache. */
async function consult(job: ClaimedJob, control: RunControl, { cache }: AttemptParts): Promise<CacheAdvice | null> {
  return job.cacheKey === null ? null : cache.consult({ ...job, cacheKey: job.cacheKey }, control);
}

async function dispatch(
  url: VettedUrl,
  { facts: known, again }: { readonly facts: Omit<AttemptFacts, "admissionMs">; readonly again: Revalidation | null },
  control: RunControl,
  parts: AttemptParts,
): Promise<AttemptOutcome> {
  const { job, way } = known;
  const admission = parts.admissionFor(job, way);
  const session = await parts.sessions.sessionOf(job, way);
  const spooling = parts.spool.open();
  let spooled: SpooledBody | null = null;
  try {
    const fetched = await way.transport.fetch(
      {
        url,
        method: job.target.method,
        headers: again === null ? job.target.headers : { ...job.target.headers, ...toConditions(again.answer) },
        accept: job.accept,
        contentTypes: job.contentTypes,
        maxBodyBytes: job.maxBodyBytes,
        callerId: job.callerId,
        robots: job.robots,
        deadline: job.deadlineAtMs,
        attemptLimitMs: way.attemptMs,
        capture: job.capture ?? "DOM",
        egress: { country: job.egress?.country ?? null, session },
      },
      spooling,
      { signal: control.signal, admit: admission.admit },
    );
    const facts = { ...known, admissionMs: admission.waitedMs() };
    if (!fetched.ok && fetched.aborted) return goBack(facts, fetched, admission, control);
    if (again !== null && statusOf(fetched) === 304) return await vouched(facts, fetched, again, parts);
    if (!fetched.ok) return await failed(facts, fetched, session, parts);
    if (!fetched.response.hasBody)
      return { kind: "REPORTED", report: succeededReport(facts, fetched, null), body: null };
    spooled = await spooling.finish();
    const { contentType, finalUrl, httpStatus } = fetched.response;
    const origin = { contentType: contentType.sniffed ?? contentType.declared, finalUrl, httpStatus };
    const body = spooled;
    const storing = parts.untilStored(() => parts.storeBody.store(body, origin), control.signal);
    const bytes = await unlessDrained(storing, control.signal);
    // What is put all the same has no row: the listing scrub finds it.
    if (bytes === null) return { kind: "REPORTED", report: handedBackReport(facts, fetched, 0), body: null };
    const outcome = { kind: "REPORTED" as const, report: succeededReport(facts, fetched, bytes), body: spooled };
    spooled = null;
    return outcome;
  } finally {
    await spooled?.discard();
    await spooling.discard();
  }
}

/** A 304 to our own condition. One that is not of the very answer that is stored is worth nothing: go again without it. */
async function vouched(
  facts: AttemptFacts,
  fetched: FetchOutcome,
  again: Revalidation,
  parts: AttemptParts,
): Promise<AttemptOutcome> {
  const { caching } = facts;
  if (fetched.ok && caching !== null && isVouchedFor(again, fetched.response)) {
    const report = renewedReport({ ...facts, caching }, fetched, { ...again, artifactId: parts.createId() });
    return { kind: "REPORTED", report, body: null, renews: again.answer };
  }
  await parts.cache.drop(again.answer);
  return { kind: "REPORTED", report: handedBackReport(facts, fetched, 0), body: null };
}

function statusOf(fetched: FetchOutcome): number | null {
  return fetched.ok ? fetched.response.httpStatus : fetched.httpStatus;
}

async function failed(
  facts: AttemptFacts,
  fetched: FetchOutcome & { ok: false; aborted: false },
  session: string | null,
  parts: AttemptParts,
): Promise<AttemptOutcome> {
  const { job } = facts;
  const next = parts.decideNext(fetched.failure, job.attemptsUsed);
  const learned = parts.lessons.learn(job, fetched, next.retryAfterMs);
  await parts.sessions.onFailure(job, facts.way, fetched, session);
  const kept = fetched.refusedBody === null ? null : await parts.keepEvidence(fetched.refusedBody);
  const report = failedReport(facts, fetched, { ...next, ...learned, evidence: kept?.bytes ?? null });
  return { kind: "REPORTED", report, body: kept?.body ?? null };
}

/** An attempt that we ended ourselves: by its signal, or because its next request has to wait too long. */
function goBack(
  facts: AttemptFacts,
  fetched: FetchOutcome & { ok: false; aborted: true },
  admission: JobAdmission,
  control: RunControl,
): AttemptOutcome {
  const { wait } = fetched;
  // What has cost something is in the ledger, whatever it was for.
  const isUnsent = !fetched.sent && costMicros(facts.way, fetched.usage) === 0;
  if (wait === null && (isLost(control) || (control.signal.reason !== "DRAIN" && !isUnsent)))
    return { kind: "ABANDONED" };
  if (!isUnsent) {
    return { kind: "REPORTED", report: handedBackReport(facts, fetched, wait?.horizonMs ?? 0), body: null };
  }
  const booking = admission.booking();
  if (wait === null) return releaseSoon({ booking });
  return releaseSoon({ dueInMs: wait.dueMs, horizonInMs: wait.horizonMs, booking });
}

/**
 * The job can't go by this attempt's route: it goes on by its next one, or ends. A diverted job without a next one waits for
 * its own route, which is quarantined, rather than end on another one's cap.
 */
function closed(job: ClaimedJob, closedBy: LocalFailure, parts: AttemptParts): AttemptOutcome {
  if (job.isDiverted && job.isLastRoute) return releaseSoon({ dueInMs: QUARANTINED_MS * (1 + parts.random()) });
  return releaseSoon({ closedBy });
}

/** Nothing is sent at or after the deadline, nor under a lease that may be somebody else's by now. */
function mayDispatch(job: ClaimedJob, control: RunControl, parts: AttemptParts): boolean {
  return !control.signal.aborted && control.isTrusted() && parts.monotonicMs() < job.deadlineAtMs;
}

/** Of an attempt that sent nothing, the count goes back, unless the lease went first. */
function unsent(control: RunControl): AttemptOutcome {
  return isLost(control) ? { kind: "ABANDONED" } : releaseSoon();
}

function isLost({ signal }: RunControl): boolean {
  return signal.reason === "LEASE_LOST" || signal.reason === "CANCELLED";
}
