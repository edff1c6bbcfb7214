import { RegisterCallbackEndpoint, RegisteredCallbackEndpoint } from "@keble-scraper/contract";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** Registers where a caller's outcomes are posted. The answer holds the signing secret, this once. */
export const registerCallbackEndpoint = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "callbacks:manage" })
  .input(RegisterCallbackEndpoint)
  .output(RegisteredCallbackEndpoint)
  .mutation(({ ctx, input, signal }) =>
    unwrap(ctx.services.callbacks.registerEndpoint.mutate({ principal: ctx.principal, input }, ctx.call(signal))),
  );
