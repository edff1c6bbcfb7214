import { z } from "zod";
import { AttemptPage, AttemptQuery } from "../attempt.ts";
import { DetailedFailure } from "../error-envelope.ts";
import { Id, Micros } from "../id.ts";
import { Job, JobPage, JobQuery } from "../job.ts";
import { RouteCheck } from "../job-answers.ts";
import { ROUTES } from "../job-sets.ts";
import { Principal } from "../principal.ts";
import { BATCH_JOBS_MAX, IdempotencyKey, WaitSeconds } from "../submit-job.ts";
import { resultOf } from "./result-of.ts";

/** intake.submitJob: `body` is JSON as it was sent, parsed as `SubmitJob` by intake, compared as sent. */
export const SubmitJobCall = z.strictObject({
  principal: Principal,
  body: z.unknown(),
  idempotencyKey: IdempotencyKey.optional(),
});
export type SubmitJobCall = z.infer<typeof SubmitJobCall>;
/** `replay`: the job was there already, under the same key. */
export const SubmitJobAnswer = resultOf(z.strictObject({ job: Job, replay: z.boolean() }));
export type SubmitJobAnswer = z.infer<typeof SubmitJobAnswer>;

/** intake.submitBatch: each item is JSON as sent, a `SubmitJob` with an optional `idempotencyKey`. */
export const SubmitBatchCall = z.strictObject({
  principal: Principal,
  jobs: z.array(z.unknown()).min(1).max(BATCH_JOBS_MAX),
});
export type SubmitBatchCall = z.infer<typeof SubmitBatchCall>;
/** One answer per item, in order. */
export const SubmitBatchAnswer = resultOf(
  z.strictObject({
    items: z
      .array(z.union([z.strictObject({ job: Job }), z.strictObject({ error: DetailedFailure })]))
      .max(BATCH_JOBS_MAX),
  }),
);
export type SubmitBatchAnswer = z.infer<typeof SubmitBatchAnswer>;

/** intake.checkJob: `body` as in a submit. A body that is malformed fails; one that is refused is an answer. */
export const CheckJobCall = z.strictObject({ principal: Principal, body: z.unknown() });
export type CheckJobCall = z.infer<typeof CheckJobCall>;
export const CheckJobAnswer = resultOf(
  z.strictObject({
    allowed: z.boolean(),
    error: DetailedFailure.optional(),
    routes: z.array(RouteCheck).max(ROUTES.length),
    worstCostMicros: Micros,
  }),
);
export type CheckJobAnswer = z.infer<typeof CheckJobAnswer>;

/** intake.getJob: with `waitSeconds`, answers as soon as the job is terminal, else after that time. */
export const GetJobCall = z.strictObject({ principal: Principal, id: Id, waitSeconds: WaitSeconds.optional() });
export type GetJobCall = z.infer<typeof GetJobCall>;
/** intake.cancelJob: a terminal job comes back unchanged. */
export const CancelJobCall = z.strictObject({ principal: Principal, id: Id });
export type CancelJobCall = z.infer<typeof CancelJobCall>;
/** intake.deleteJob: erases a terminal job; CONFLICT while it is open, or its event is or may be replayed. */
export const DeleteJobCall = z.strictObject({ principal: Principal, id: Id, requestId: z.string().min(1).max(128) });
export type DeleteJobCall = z.infer<typeof DeleteJobCall>;
export const DeleteJobAnswer = resultOf(z.null());
export type DeleteJobAnswer = z.infer<typeof DeleteJobAnswer>;
/** The answer to a read or a cancel. Another caller's job is NOT_FOUND. */
export const JobAnswer = resultOf(Job);
export type JobAnswer = z.infer<typeof JobAnswer>;

/** intake.listJobs: an operator sees every caller's. */
export const ListJobsCall = z.strictObject({ principal: Principal, query: JobQuery });
export type ListJobsCall = z.infer<typeof ListJobsCall>;
export const ListJobsAnswer = resultOf(JobPage);
export type ListJobsAnswer = z.infer<typeof ListJobsAnswer>;

/** intake.listAttempts: the ledger of one job, oldest first. */
export const ListAttemptsCall = z.strictObject({ principal: Principal, id: Id, query: AttemptQuery });
export type ListAttemptsCall = z.infer<typeof ListAttemptsCall>;
export const ListAttemptsAnswer = resultOf(AttemptPage);
export type ListAttemptsAnswer = z.infer<typeof ListAttemptsAnswer>;
