import { ListJobsAnswer, ListJobsCall, ok } from "@keble-scraper/contract";
import { listJobs as readJobs, readCursor } from "@keble-scraper/db";
import { procedure } from "../procedure.ts";

/** A page of jobs, newest first: a service's own, an operator's of all callers. */
export const listJobs = procedure
  .input(ListJobsCall)
  .output(ListJobsAnswer)
  .query(async ({ ctx, input }) => {
    const { cursor, label, ...filter } = input.query;
    const after = readCursor(cursor);
    if (!after.ok) return after;
    return ok(
      await readJobs(ctx.database.reads, {
        ...filter,
        callerId: input.principal.callerId,
        afterId: after.value,
        label: label === undefined ? null : splitLabel(label),
      }),
    );
  });

/** `key:value`; neither side holds a colon. */
function splitLabel(label: string): { key: string; value: string } {
  const [key = "", value = ""] = label.split(":");
  return { key, value };
}
