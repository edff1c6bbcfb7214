import {
  type DetailedFailure,
  type Job,
  type Result,
  SubmitJob,
  failed,
  formatTime,
  localFailure,
  ok,
  zodDetails,
} from "@keble-scraper/contract";
import { listJobsById } from "@keble-scraper/db";
import { type NewJob, type SubmitVerdict, submitJobs as storeJobs } from "@keble-scraper/db/commands/intake";
import { v7 as uuidv7 } from "uuid";
import { cacheKey } from "./cache-key.ts";
import type { IntakeContext } from "./context.ts";
import { vetJob } from "./job-policy.ts";
import { requestHash } from "./request-hash.ts";

/** One submit as it came: the body as it was sent, and the key beside it. */
export type Submission = { readonly body: unknown; readonly idempotencyKey: string | null };

/** An accepted job, or the first job of the same key (`replay`). */
export type Accepted = { readonly job: Job; readonly replay: boolean };

/** How long a caller with a full queue is asked to wait: a second is about what a queue needs to move. */
const QUEUE_FULL_WAIT_MS = 1_000;

/**
 * Accepts jobs of one caller: each is judged alone, all good ones are accepted in one transaction, and the workers are
 * rung once per transport after it has committed.
 */
export async function submitJobs(
  context: IntakeContext,
  callerId: string,
  submissions: readonly Submission[],
): Promise<Result<Accepted, DetailedFailure>[]> {
  const routes = await context.routes.list();
  const judged = submissions.map((submission) => judge(submission, { ...context, routes }));
  const jobs = judged.flatMap((result) => (result.ok ? [result.value] : []));
  const verdicts = jobs.length === 0 ? [] : await store(context, callerId, jobs);
  // Right after the commit: nothing that fails below may cost a batch its bell.
  ringOnce(context, jobs, verdicts);
  const replayed = new Map(
    (await listJobsById(context.database.reads, idsOf(verdicts, "REPLAYED"))).map((job) => [job.id, job]),
  );
  let next = 0;
  const answers = judged.map((result): Result<Accepted, DetailedFailure> => {
    if (!result.ok) return result;
    const verdict = verdicts[next];
    next += 1;
    if (verdict === undefined) throw new Error("a job got no verdict");
    return toAnswer(callerId, result.value, verdict, replayed);
  });
  return answers;
}

function judge(submission: Submission, policy: Parameters<typeof vetJob>[1]): Result<NewJob, DetailedFailure> {
  const parsed = SubmitJob.safeParse(submission.body);
  if (!parsed.success) return failed({ ...localFailure("INVALID_REQUEST"), details: zodDetails(parsed.error) });
  const job = parsed.data;
  const vetted = vetJob(job, policy);
  if (!vetted.ok) return vetted;
  const { url, hostKey } = vetted.value;
  const capture = job.transport === "RENDER" ? (job.capture ?? "DOM") : null;
  return ok({
    id: uuidv7(),
    idempotencyKey: submission.idempotencyKey,
    requestSha256: requestHash(submission.body),
    target: { ...job.target, url },
    hostKey,
    transport: job.transport,
    routes: job.routes,
    freshness: job.freshness,
    cacheKey: cacheKey(job, { url, capture }),
    accept: job.accept,
    contentTypes: job.contentTypes,
    robots: job.robots,
    capture,
    egress: job.egress ?? null,
    labels: job.labels,
    attemptBudget: job.limits.attemptBudget,
    maxBodyBytes: job.limits.maxBodyBytes,
    costCapMicros: job.limits.costCapMicros,
    deadlineSeconds: job.limits.deadlineSeconds,
    callbackEndpoint: job.callback?.endpoint ?? null,
  });
}

async function store(context: IntakeContext, callerId: string, jobs: readonly NewJob[]): Promise<SubmitVerdict[]> {
  const queuedMax = await context.queue.boundFor(callerId, jobs.length);
  return storeJobs(context.database.commands, { callerId, jobs, queuedMax });
}

function toAnswer(
  callerId: string,
  job: NewJob,
  verdict: SubmitVerdict,
  replayed: ReadonlyMap<string, Job>,
): Result<Accepted, DetailedFailure> {
  switch (verdict.kind) {
    case "ACCEPTED":
      return ok({ job: toAcceptedJob(callerId, job, verdict), replay: false });
    case "REPLAYED": {
      const first = replayed.get(verdict.id);
      if (first === undefined) throw new Error("the first job of a replay could not be read");
      return ok({ job: first, replay: true });
    }
    case "QUEUE_FULL":
      return failed(localFailure("QUEUE_FULL", { retryAt: formatTime(new Date(Date.now() + QUEUE_FULL_WAIT_MS)) }));
    case "IDEMPOTENCY_MISMATCH":
    case "UNKNOWN_CALLBACK_ENDPOINT":
      return failed(localFailure(verdict.kind));
  }
}

/** What a read of the new job would say, without the read. */
function toAcceptedJob(
  callerId: string,
  job: NewJob,
  stored: { readonly createdAt: Date; readonly deadlineAt: Date },
): Job {
  const createdAt = formatTime(stored.createdAt);
  return {
    id: job.id,
    callerId,
    status: "QUEUED",
    target: job.target as Job["target"],
    transport: job.transport as Job["transport"],
    routes: job.routes as Job["routes"],
    ...(job.capture === null ? {} : { capture: job.capture as NonNullable<Job["capture"]> }),
    freshness: job.freshness as Job["freshness"],
    accept: job.accept as Job["accept"],
    robots: job.robots as Job["robots"],
    ...(job.egress === null ? {} : { egress: job.egress }),
    limits: {
      attemptBudget: job.attemptBudget,
      attemptsUsed: 0,
      deadlineAt: formatTime(stored.deadlineAt),
      maxBodyBytes: job.maxBodyBytes,
      costCapMicros: job.costCapMicros,
      costMicros: 0,
    },
    result: null,
    failure: null,
    callback:
      job.callbackEndpoint === null ? null : { endpoint: job.callbackEndpoint, eventId: null, state: "PENDING" },
    labels: job.labels,
    createdAt,
    dueAt: createdAt,
    finishedAt: null,
  };
}

function ringOnce(context: IntakeContext, jobs: readonly NewJob[], verdicts: readonly SubmitVerdict[]): void {
  const rung = new Set<string>();
  verdicts.forEach((verdict, index) => {
    const transport = jobs[index]?.transport;
    if (verdict.kind !== "ACCEPTED" || transport === undefined || rung.has(transport)) return;
    rung.add(transport);
    context.ring({ transport, jobId: verdict.id });
  });
}

function idsOf(verdicts: readonly SubmitVerdict[], kind: "REPLAYED"): string[] {
  return verdicts.flatMap((verdict) => (verdict.kind === kind ? [verdict.id] : []));
}
