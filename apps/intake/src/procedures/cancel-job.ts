import { CancelJobCall, JobAnswer, failed, localFailure, ok } from "@keble-scraper/contract";
import { findJob } from "@keble-scraper/db";
import { cancelJob as storeCancel } from "@keble-scraper/db/commands/intake";
import { procedure } from "../procedure.ts";

/** Cancels a job at once; a terminal job comes back unchanged. Its worker is told by a lossy hint. */
export const cancelJob = procedure
  .input(CancelJobCall)
  .output(JobAnswer)
  .mutation(async ({ ctx, input }) => {
    const { callerId } = input.principal;
    const target = { id: input.id, callerId };
    const ended = await storeCancel(ctx.database.commands, target, { jobRetentionMs: ctx.jobRetentionMs });
    if (ended !== null) {
      ctx.announceCancelled([ended.id]);
      ctx.announceEnded([ended]);
    }
    const job = await findJob(ctx.database.reads, input.id, callerId);
    return job === null ? failed(localFailure("NOT_FOUND")) : ok(job);
  });
