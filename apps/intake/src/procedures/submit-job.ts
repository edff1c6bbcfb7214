import { SubmitJobAnswer, SubmitJobCall, failed, localFailure } from "@keble-scraper/contract";
import { procedure } from "../procedure.ts";
import { submitJobs } from "../submit-jobs.ts";

/** Accepts one job. Operators submit nothing. */
export const submitJob = procedure
  .input(SubmitJobCall)
  .output(SubmitJobAnswer)
  .mutation(async ({ ctx, input }) => {
    const { callerId } = input.principal;
    if (callerId === null) return failed(localFailure("FORBIDDEN"));
    const submission = { body: input.body, idempotencyKey: input.idempotencyKey ?? null };
    const [answer] = await submitJobs(ctx, callerId, [submission]);
    if (answer === undefined) throw new Error("a submit got no answer");
    return answer;
  });
