import { SubmitJobRequest, SubmittedJob } from "@keble-scraper/contract";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** Accepts a job, or gives back the one that the same key and body made. With a wait, answers when the job ends. */
export const submitJob = apiProcedure({ kinds: ["SERVICE"], scope: "jobs:write" })
  .input(SubmitJobRequest)
  .output(SubmittedJob)
  .mutation(({ ctx, input, signal }) => {
    const { principal } = ctx;
    const intake = input.waitSeconds === undefined ? ctx.services.intake : ctx.services.waiting();
    return unwrap(intake.submitJob.mutate({ principal, ...input }, ctx.call(signal, input.waitSeconds)));
  });
