import { ListEventsAnswer, ListEventsCall, ok } from "@keble-scraper/contract";
import { listEvents as readEvents, readCursor } from "@keble-scraper/db";
import { procedure } from "../context.ts";
import { managedCaller } from "../managed-caller.ts";

/** A page of events, newest first: a service's own, an operator's of all callers. */
export const listEvents = procedure
  .input(ListEventsCall)
  .output(ListEventsAnswer)
  .query(async ({ ctx, input: { principal, query } }) => {
    const caller = managedCaller(principal);
    if (!caller.ok) return caller;
    const after = readCursor(query.cursor);
    if (!after.ok) return after;
    return ok(
      await readEvents(ctx.database.reads, {
        callerId: caller.value,
        state: query.state ?? null,
        endpointId: query.endpointId ?? null,
        afterId: after.value,
        limit: query.limit,
      }),
    );
  });
