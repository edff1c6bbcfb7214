import { ListAttemptsAnswer, ListAttemptsCall, failed, localFailure, ok } from "@keble-scraper/contract";
import { findJob, listAttempts as readAttempts, parseCursor } from "@keble-scraper/db";
import { procedure } from "../procedure.ts";

/** A page of a job's ledger, oldest first. */
export const listAttempts = procedure
  .input(ListAttemptsCall)
  .output(ListAttemptsAnswer)
  .query(async ({ ctx, input }) => {
    const { cursor, limit } = input.query;
    const afterId = cursor === undefined ? null : parseCursor(cursor);
    if (cursor !== undefined && afterId === null) {
      const details = [{ path: "cursor", message: "Give back a cursor as it came." }];
      return failed({ ...localFailure("INVALID_REQUEST"), details });
    }
    const job = await findJob(ctx.database.reads, input.id, input.principal.callerId);
    if (job === null) return failed(localFailure("NOT_FOUND"));
    return ok(await readAttempts(ctx.database.reads, { jobId: job.id, afterId, limit }));
  });
