import { z } from "zod";
import { type BatchJobInput, BATCH_JOBS_MAX, IdempotencyKey, type SubmitJobInput, WaitSeconds } from "./submit-job.ts";

/** A submit as the typed face takes it: a body, with the key and the wait beside its fields. */
export type SubmitJobRequestInput = SubmitJobInput & {
  idempotencyKey?: string | undefined;
  waitSeconds?: number | undefined;
};

/** The same taken apart. `body` is as it was sent: intake parses it, and compares it as sent. */
export type SubmitJobRequest = {
  body: unknown;
  idempotencyKey?: string | undefined;
  waitSeconds?: number | undefined;
};

/** Takes the key and the wait off a submit and leaves the body as it was sent. */
export const SubmitJobRequest = z
  .looseObject({ idempotencyKey: IdempotencyKey.optional(), waitSeconds: WaitSeconds.optional() })
  // Its type is what intake will accept, so that a client's compiler knows the fields.
  .transform(({ idempotencyKey, waitSeconds, ...body }) => ({
    body,
    idempotencyKey,
    waitSeconds,
  })) as unknown as z.ZodType<SubmitJobRequest, SubmitJobRequestInput>;

/** A batch as the typed face takes it: each item as a caller writes it, parsed alone by intake. */
export const SubmitBatchRequest = z.strictObject({
  jobs: z.array(z.unknown()).min(1).max(BATCH_JOBS_MAX),
}) as unknown as z.ZodType<{ jobs: unknown[] }, { jobs: BatchJobInput[] }>;
export type SubmitBatchRequest = z.infer<typeof SubmitBatchRequest>;

/** The body of a check as it was sent. */
export const CheckJobRequest = z.looseObject({}) as unknown as z.ZodType<Record<string, unknown>, SubmitJobInput>;
export type CheckJobRequest = z.infer<typeof CheckJobRequest>;
