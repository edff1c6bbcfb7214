import { z } from "zod";
import { ErrorBody } from "./error-envelope.ts";
import { Micros } from "./id.ts";
import { Job } from "./job.ts";
import { ROUTES } from "./job-sets.ts";
import { BATCH_JOBS_MAX } from "./submit-job.ts";

/**
 * Whether a route can be had here now; `reason` says why not, or why this job will pass it over all the same: one attempt
 * may cost more than the job's cap.
 */
export const RouteCheck = z.strictObject({
  route: z.enum(ROUTES),
  available: z.boolean(),
  reason: z.string().max(500).optional(),
});
export type RouteCheck = z.infer<typeof RouteCheck>;

/** What a submit of the same body would meet. `error` is set when it is not allowed. */
export const JobCheck = z.strictObject({
  allowed: z.boolean(),
  error: ErrorBody.optional(),
  routes: z.array(RouteCheck).max(ROUTES.length),
  /** The most that all attempts together may cost; 0 on free routes. */
  worstCostMicros: Micros,
});
export type JobCheck = z.infer<typeof JobCheck>;

/** One answer of a batch, in the order of its items. */
export const BatchItem = z.union([z.strictObject({ job: Job }), z.strictObject({ error: ErrorBody })]);
export type BatchItem = z.infer<typeof BatchItem>;

/** The answer to a batch, one item for each job sent. */
export const Batch = z.strictObject({ items: z.array(BatchItem).max(BATCH_JOBS_MAX) });
export type Batch = z.infer<typeof Batch>;

/** The answer to a submit on the typed face. `replay`: the job was there already, under the same key. */
export const SubmittedJob = z.strictObject({ job: Job, replay: z.boolean() });
export type SubmittedJob = z.infer<typeof SubmittedJob>;
