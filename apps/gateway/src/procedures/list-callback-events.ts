import { CallbackEventPage, CallbackEventQuery } from "@keble-scraper/contract";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** A page of events, newest first: a service's own caller's, or everybody's to an operator. */
export const listCallbackEvents = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "callbacks:manage" })
  .input(CallbackEventQuery)
  .output(CallbackEventPage)
  .query(({ ctx, input, signal }) =>
    unwrap(ctx.services.callbacks.listEvents.query({ principal: ctx.principal, query: input }, ctx.call(signal))),
  );
