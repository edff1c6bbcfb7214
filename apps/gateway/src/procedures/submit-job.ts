import { SubmitJobRequest, SubmittedJob } from "@keble-scraper/contract";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** Accepts a job, or gives back the one that the same key and body made. With a wait, answers when the job ends. */
export const submitJob = apiProcedure({ kinds: ["SERVICE"], scope: "jobs:write" })
  .input(SubmitJobRequest)
  .output(SubmittedJob)
  .mutation(({ ctx, input: { waitSeconds: wanted, ...submit }, signal }) =>
    ctx.services.askWaiting(wanted, (intake, waitSeconds) =>
      unwrap(
        intake.submitJob.mutate({ principal: ctx.principal, ...submit, waitSeconds }, ctx.call(signal, waitSeconds)),
      ),
    ),
  );
