import { GetJobCall, JobAnswer, failed, localFailure, ok } from "@keble-scraper/contract";
import { procedure } from "../procedure.ts";
import { waitForJob } from "../wait-for-job.ts";

/** One job; with `waitSeconds`, as soon as it is terminal. Another caller's job is not found. */
export const getJob = procedure
  .input(GetJobCall)
  .output(JobAnswer)
  .query(async ({ ctx, input }) => {
    const { callerId } = input.principal;
    const job = await waitForJob(ctx, { id: input.id, callerId, waitSeconds: input.waitSeconds ?? 0 });
    return job === null ? failed(localFailure("NOT_FOUND")) : ok(job);
  });
