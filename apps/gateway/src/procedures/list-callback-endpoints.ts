import { CallbackEndpointPage, CallbackEndpointQuery } from "@keble-scraper/contract";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** A page of endpoints: a service's own caller's, or everybody's to an operator. */
export const listCallbackEndpoints = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "callbacks:manage" })
  .input(CallbackEndpointQuery)
  .output(CallbackEndpointPage)
  .query(({ ctx, input, signal }) =>
    unwrap(ctx.services.callbacks.listEndpoints.query({ principal: ctx.principal, query: input }, ctx.call(signal))),
  );
