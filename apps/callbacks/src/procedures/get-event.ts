import { failed, GetEventAnswer, GetEventCall, localFailure, ok } from "@keble-scraper/contract";
import { findEvent } from "@keble-scraper/db";
import { procedure } from "../context.ts";
import { managedCaller } from "../managed-caller.ts";

/** One event with its deliveries and tries. Another caller's is not found. */
export const getEvent = procedure
  .input(GetEventCall)
  .output(GetEventAnswer)
  .query(async ({ ctx, input: { principal, id } }) => {
    const caller = managedCaller(principal);
    if (!caller.ok) return caller;
    const event = await findEvent(ctx.database.reads, id, caller.value);
    return event === null ? failed(localFailure("NOT_FOUND")) : ok(event);
  });
