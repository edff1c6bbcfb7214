import { ListAttemptsAnswer, ListAttemptsCall, failed, localFailure, ok } from "@keble-scraper/contract";
import { findJob, listAttempts as readAttempts, readCursor } from "@keble-scraper/db";
import { procedure } from "../procedure.ts";

/** A page of a job's ledger, oldest first. */
export const listAttempts = procedure
  .input(ListAttemptsCall)
  .output(ListAttemptsAnswer)
  .query(async ({ ctx, input }) => {
    const { cursor, limit } = input.query;
    const after = readCursor(cursor);
    if (!after.ok) return after;
    const job = await findJob(ctx.database.reads, input.id, input.principal.callerId);
    if (job === null) return failed(localFailure("NOT_FOUND"));
    return ok(await readAttempts(ctx.database.reads, { jobId: job.id, afterId: after.value, limit }));
  });
