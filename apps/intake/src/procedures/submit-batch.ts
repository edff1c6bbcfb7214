import {
  type DetailedFailure,
  IdempotencyKey,
  SubmitBatchAnswer,
  SubmitBatchCall,
  failed,
  localFailure,
  ok,
  zodDetails,
} from "@keble-scraper/contract";
import { procedure } from "../procedure.ts";
import { type Submission, submitJobs } from "../submit-jobs.ts";

/** Accepts up to 1,000 jobs: a bad item harms no other, all good ones are one transaction. */
export const submitBatch = procedure
  .input(SubmitBatchCall)
  .output(SubmitBatchAnswer)
  .mutation(async ({ ctx, input }) => {
    const { callerId } = input.principal;
    if (callerId === null) return failed(localFailure("FORBIDDEN"));
    const read = input.jobs.map(readItem);
    const submissions = read.flatMap((item) => ("error" in item ? [] : [item]));
    const answers = await submitJobs(ctx, callerId, submissions);
    // One queue for all: when the good items do not fit, the batch is refused as a whole.
    const full = answers.find((answer) => !answer.ok && answer.failure.code === "QUEUE_FULL");
    if (full !== undefined && !full.ok) return full;
    let next = 0;
    const items = read.map((item) => {
      if ("error" in item) return item;
      const answer = answers[next];
      next += 1;
      if (answer === undefined) throw new Error("a job got no answer");
      return answer.ok ? { job: answer.value.job } : { error: answer.failure };
    });
    return ok({ items });
  });

/** An item's key stands beside its body: it is no part of what is compared. */
function readItem(item: unknown): Submission | { readonly error: DetailedFailure } {
  if (typeof item !== "object" || item === null || Array.isArray(item) || !("idempotencyKey" in item)) {
    return { body: item, idempotencyKey: null };
  }
  const { idempotencyKey, ...body } = item;
  const key = IdempotencyKey.safeParse(idempotencyKey);
  if (key.success) return { body, idempotencyKey: key.data };
  const details = zodDetails(key.error).map((detail) => ({ ...detail, path: "idempotencyKey" }));
  return { error: { ...localFailure("INVALID_REQUEST"), details } };
}
