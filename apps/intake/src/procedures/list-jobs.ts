import { ListJobsAnswer, ListJobsCall, failed, localFailure, ok } from "@keble-scraper/contract";
import { listJobs as readJobs, parseCursor } from "@keble-scraper/db";
import { procedure } from "../procedure.ts";

/** A page of jobs, newest first: a service's own, an operator's of all callers. */
export const listJobs = procedure
  .input(ListJobsCall)
  .output(ListJobsAnswer)
  .query(async ({ ctx, input }) => {
    const { cursor, label, ...filter } = input.query;
    const afterId = cursor === undefined ? null : parseCursor(cursor);
    if (cursor !== undefined && afterId === null) {
      const details = [{ path: "cursor", message: "Give back a cursor as it came." }];
      return failed({ ...localFailure("INVALID_REQUEST"), details });
    }
    return ok(
      await readJobs(ctx.database.reads, {
        ...filter,
        callerId: input.principal.callerId,
        afterId,
        label: label === undefined ? null : splitLabel(label),
      }),
    );
  });

/** `key:value`; neither side holds a colon. */
function splitLabel(label: string): { key: string; value: string } {
  const [key = "", value = ""] = label.split(":");
  return { key, value };
}
