import type {
  AttemptReport,
  CacheVerdict,
  Release as JobRelease,
  SettleVerdict,
} from "@keble-scraper/db/commands/fetching";
import type { CachedAnswer, EndedJob } from "@keble-scraper/db";
import type { Logger, RunControl, SettleLane, Signals } from "@keble-scraper/service";
import type { AttemptOutcome, Release } from "./attempt-outcome.ts";
import type { Followers } from "./cache/followers.ts";
import type { LookPace } from "./cache/look-pace.ts";
import type { ClaimedJob } from "./claimed-job.ts";
import type { StoreBody } from "./store-body.ts";

/** What finishing may use. */
export type FinishParts = {
  readonly lane: SettleLane<AttemptReport, SettleVerdict>;
  readonly storeBody: StoreBody;
  readonly followers: Followers;
  readonly pace: Pick<LookPace, "nextInMs">;
  dropCached(answer: CachedAnswer): Promise<void>;
  release(release: JobRelease): Promise<readonly EndedJob[]>;
  /** True for errors that say nothing of the row: Postgres is away. */
  isOutage(error: unknown): boolean;
  /** Told after commit that the job is due again, in milliseconds from now. */
  onDueIn(ms: number): void;
  /** Told after commit that a host is held or a route shut. */
  onShut(): void;
  /** Told after commit of jobs that ended: wakes whoever waits for them. */
  onEnded(jobs: readonly EndedJob[]): void;
  readonly signals: Signals;
  readonly logger: Logger;
};

/** Between two tries to release while Postgres is away. */
const RETRY_MS = 250;

/** Writes what became of an attempt, under its fence, and drops the spooled body once that has committed. */
export async function finishAttempt(
  job: ClaimedJob,
  outcome: AttemptOutcome,
  control: RunControl,
  parts: FinishParts,
): Promise<void> {
  switch (outcome.kind) {
    case "ABANDONED":
      parts.logger.info({ ...attemptOf(job), why: String(control.signal.reason) }, "attempt.abandoned");
      parts.followers.wake(job.cacheKey, "NOT_ANSWERED");
      return;
    case "TAKEN":
      return finishTaken(job, outcome.verdict, parts);
    case "RELEASED":
      return finishReleased(job, outcome, control, parts);
    case "REPORTED":
      return finishReported(job, outcome, control, parts);
  }
}

/** What each line of log about an attempt begins with. */
function attemptOf({ id, callerId, attemptNumber, route }: ClaimedJob) {
  return { jobId: id, callerId, attempt: attemptNumber, route };
}

async function finishTaken(job: ClaimedJob, verdict: CacheVerdict, parts: FinishParts): Promise<void> {
  await parts.signals.reach("settled", verdict);
  const { ageSeconds, ended } = verdict;
  const line = { ...attemptOf(job), cache: "HIT", ageSeconds, ended: ended?.status ?? null };
  parts.logger.info(line, "attempt.ended");
  if (ended !== null) parts.onEnded([ended]);
}

async function finishReleased(
  job: ClaimedJob,
  outcome: Release,
  control: RunControl,
  parts: FinishParts,
): Promise<void> {
  const { horizonInMs, closedBy, waitsForFlight } = outcome;
  const dueInMs = waitsForFlight ? Math.min(outcome.dueInMs, parts.pace.nextInMs(job.callerId)) : outcome.dueInMs;
  parts.onEnded(await release(toJobRelease(job, { ...outcome, dueInMs }), control, parts));
  const cache = waitsForFlight ? "WAIT" : null;
  if (waitsForFlight) parts.followers.wait(job);
  parts.onDueIn(closedBy === null ? dueInMs : 0);
  const line = { ...attemptOf(job), dueInMs, horizonInMs, closedBy: closedBy?.code ?? null, cache };
  parts.logger.info(line, "attempt.released");
}

async function finishReported(
  job: ClaimedJob,
  outcome: AttemptOutcome & { kind: "REPORTED" },
  control: RunControl,
  parts: FinishParts,
): Promise<void> {
  try {
    await parts.signals.reach("settling", job);
    const { report, verdict } = await settle(outcome, control, parts);
    await parts.signals.reach("settled", verdict);
    const cache = job.cacheKey === null ? null : outcome.renews === undefined ? "MISS" : "REVALIDATED";
    parts.logger.info({ ...attemptOf(job), ...lineOf(report, verdict), cache }, "attempt.ended");
    if (report.hold !== null || report.quarantine !== null) parts.onShut();
    parts.followers.wake(job.cacheKey, report.cache == null ? "NOT_ANSWERED" : "ANSWERED");
    if (verdict.ended !== null) parts.onEnded([verdict.ended]);
    else if (verdict.verdict === "SETTLED") parts.onDueIn(report.waitMs);
  } finally {
    await outcome.body?.discard();
  }
}

/** While Postgres is away, for as long as its lease is trusted: a job that only waited may not lose its attempt to that. */
async function release(job: JobRelease, control: RunControl, parts: FinishParts): Promise<readonly EndedJob[]> {
  for (;;) {
    try {
      return await parts.release(job);
    } catch (error) {
      if (!parts.isOutage(error)) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      if (!control.isTrusted()) throw error;
    }
  }
}

function toJobRelease({ id, token }: ClaimedJob, { dueInMs, horizonInMs, booking, closedBy }: Release): JobRelease {
  const release = { id, token, dueInMs, horizonInMs, booking };
  return closedBy === null ? release : { ...release, next: "NEXT_ROUTE", failure: closedBy };
}

/**
 * Bytes that were seen may be deleted before the settle locks them: then they are put, and settled again. Those of a stored
 * answer that was vouched for can't be: the answer is dropped, and the job goes again at once, uncounted.
 */
async function settle(
  { report, body, renews }: AttemptOutcome & { kind: "REPORTED" },
  control: RunControl,
  parts: FinishParts,
): Promise<{ readonly report: AttemptReport; readonly verdict: SettleVerdict }> {
  const verdict = await parts.lane.settle(report, control.isTrusted);
  if (verdict.verdict !== "BYTES_GONE" || report.bytes === null) return { report, verdict };
  if (body !== null) {
    const { kind: _kind, blobId: _blobId, ...what } = report.bytes;
    const put = { ...report, bytes: { ...what, ...(await parts.storeBody.put(body)) } };
    return { report: put, verdict: await parts.lane.settle(put, control.isTrusted) };
  }
  if (renews !== undefined) await parts.dropCached(renews);
  const back = { ...report, ...HANDED_BACK, costMicros: report.hasReservation ? null : 0 };
  return { report: back, verdict: await parts.lane.settle(back, control.isTrusted) };
}

const HANDED_BACK = {
  outcome: "HANDED_BACK",
  result: null,
  bytes: null,
  cache: null,
  next: "RETRY",
  waitMs: 0,
} as const;

/** One line explains the attempt, from the report that is stored. It holds no URL and no header. */
function lineOf(report: AttemptReport, verdict: SettleVerdict) {
  const failure: { code?: string; disposition?: string } | null = report.failure;
  return {
    outcome: report.outcome,
    code: failure?.code ?? null,
    disposition: failure?.disposition ?? null,
    httpStatus: report.httpStatus,
    bodyBytes: report.bodyBytes,
    wireBytes: report.wireBytes,
    ...report.timings,
    costMicros: report.costMicros,
    heldMs: report.hold?.ms ?? null,
    quarantine: report.quarantine?.reason ?? null,
    waitMs: report.waitMs,
    verdict: verdict.verdict,
    ended: verdict.ended?.status ?? null,
  };
}
