import type { AttemptReport, Release as JobRelease, SettleVerdict } from "@keble-scraper/db/commands/fetching";
import type { EndedJob } from "@keble-scraper/db";
import type { Logger, RunControl, SettleLane, Signals } from "@keble-scraper/service";
import type { AttemptOutcome, Release } from "./attempt-outcome.ts";
import type { ClaimedJob } from "./claimed-job.ts";
import type { StoreBody } from "./store-body.ts";

/** What finishing may use. */
export type FinishParts = {
  readonly lane: SettleLane<AttemptReport, SettleVerdict>;
  readonly storeBody: StoreBody;
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
  const attempt = { jobId: job.id, callerId: job.callerId, attempt: job.attemptNumber, route: job.route };
  if (outcome.kind === "ABANDONED") {
    parts.logger.info({ ...attempt, why: String(control.signal.reason) }, "attempt.abandoned");
    return;
  }
  if (outcome.kind === "RELEASED") {
    parts.onEnded(await release(toJobRelease(job, outcome), control, parts));
    const { dueInMs, horizonInMs, closedBy } = outcome;
    parts.onDueIn(closedBy === null ? dueInMs : 0);
    parts.logger.info({ ...attempt, dueInMs, horizonInMs, closedBy: closedBy?.code ?? null }, "attempt.released");
    return;
  }
  try {
    await parts.signals.reach("settling", job);
    const verdict = await settle(outcome, control, parts);
    await parts.signals.reach("settled", verdict);
    parts.logger.info({ ...attempt, ...lineOf(outcome.report, verdict) }, "attempt.ended");
    if (outcome.report.hold !== null || outcome.report.quarantine !== null) parts.onShut();
    if (verdict.ended !== null) parts.onEnded([verdict.ended]);
    else if (verdict.verdict === "SETTLED") parts.onDueIn(outcome.report.waitMs);
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

/** Bytes that were seen may be deleted before the settle locks them: then they are put, and settled again. */
async function settle(
  { report, body }: AttemptOutcome & { kind: "REPORTED" },
  control: RunControl,
  parts: FinishParts,
): Promise<SettleVerdict> {
  const verdict = await parts.lane.settle(report, control.isTrusted);
  if (verdict.verdict !== "BYTES_GONE" || body === null || report.bytes === null) return verdict;
  const { kind: _kind, blobId: _blobId, ...what } = report.bytes;
  const bytes = { ...what, ...(await parts.storeBody.put(body)) };
  return parts.lane.settle({ ...report, bytes }, control.isTrusted);
}

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
