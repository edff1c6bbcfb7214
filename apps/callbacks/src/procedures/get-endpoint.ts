import { EndpointAnswer, failed, GetEndpointCall, localFailure, ok } from "@keble-scraper/contract";
import { findEndpoint } from "@keble-scraper/db";
import { procedure } from "../context.ts";
import { managedCaller } from "../managed-caller.ts";

/** One endpoint. Another caller's is not found, nor is a deleted one. */
export const getEndpoint = procedure
  .input(GetEndpointCall)
  .output(EndpointAnswer)
  .query(async ({ ctx, input: { principal, id } }) => {
    const caller = managedCaller(principal);
    if (!caller.ok) return caller;
    const endpoint = await findEndpoint(ctx.database.reads, id, caller.value);
    return endpoint === null ? failed(localFailure("NOT_FOUND")) : ok(endpoint);
  });
