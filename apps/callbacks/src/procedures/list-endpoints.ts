import { ListEndpointsAnswer, ListEndpointsCall, ok } from "@keble-scraper/contract";
import { listEndpoints as readEndpoints, readCursor } from "@keble-scraper/db";
import { procedure } from "../context.ts";
import { managedCaller } from "../managed-caller.ts";

/** A page of endpoints, newest first: a service's own, none of another caller's; an operator's of the caller it names, or all. */
export const listEndpoints = procedure
  .input(ListEndpointsCall)
  .output(ListEndpointsAnswer)
  .query(async ({ ctx, input: { principal, query } }) => {
    const caller = managedCaller(principal);
    if (!caller.ok) return caller;
    const after = readCursor(query.cursor);
    if (!after.ok) return after;
    const isForeign = caller.value !== null && query.callerId !== undefined && query.callerId !== caller.value;
    if (isForeign) return ok({ items: [], nextCursor: null });
    const callerId = caller.value ?? query.callerId ?? null;
    const filter = { callerId, name: query.name ?? null, afterId: after.value, limit: query.limit };
    return ok(await readEndpoints(ctx.database.reads, filter));
  });
