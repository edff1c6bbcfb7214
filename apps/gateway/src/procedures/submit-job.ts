import { isTerminal, SubmitJobRequest, SubmittedJob } from "@keble-scraper/contract";
import { DependencyUnavailable } from "@keble-scraper/service";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/**
 * Accepts a job, or gives back the one that the same key and body made. With a wait, answers when the job ends: a call of
 * its own, so that whatever ends the wait, the answer tells of the job that was accepted.
 */
export const submitJob = apiProcedure({ kinds: ["SERVICE"], scope: "jobs:write" })
  .input(SubmitJobRequest)
  .output(SubmittedJob)
  .mutation(async ({ ctx, input: { waitSeconds: wanted, ...submit }, signal }) => {
    const { intake, awaitJob } = ctx.services;
    const { principal } = ctx;
    const submitted = await unwrap(intake.submitJob.mutate({ principal, ...submit }, ctx.call(signal)));
    const { id, status } = submitted.job;
    if (wanted === undefined || isTerminal(status)) return submitted;
    try {
      const answer = await awaitJob({ principal, id }, wanted, (waitSeconds) => ctx.call(signal, waitSeconds));
      return answer.ok ? { ...submitted, job: answer.value } : submitted;
    } catch (error) {
      if (!(error instanceof DependencyUnavailable)) throw error;
      ctx.logger.warn({ requestId: ctx.requestId, err: error }, "wait.abandoned");
      return submitted;
    }
  });
