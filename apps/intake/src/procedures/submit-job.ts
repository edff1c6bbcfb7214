import { SubmitJobAnswer, SubmitJobCall, failed, localFailure, ok } from "@keble-scraper/contract";
import { procedure } from "../procedure.ts";
import { submitJobs } from "../submit-jobs.ts";
import { waitForJob } from "../wait-for-job.ts";

/** Accepts one job, and with `waitSeconds` waits for it to end. Operators submit nothing. */
export const submitJob = procedure
  .input(SubmitJobCall)
  .output(SubmitJobAnswer)
  .mutation(async ({ ctx, input }) => {
    const { callerId } = input.principal;
    if (callerId === null) return failed(localFailure("FORBIDDEN"));
    const submission = { body: input.body, idempotencyKey: input.idempotencyKey ?? null };
    const [answer] = await submitJobs(ctx, callerId, [submission]);
    if (answer === undefined) throw new Error("a submit got no answer");
    if (!answer.ok || input.waitSeconds === undefined) return answer;
    const job = await waitForJob(ctx, { id: answer.value.job.id, callerId, waitSeconds: input.waitSeconds });
    return ok({ job: job ?? answer.value.job, replay: answer.value.replay });
  });
