import { CallbackEndpoint, Id, PatchCallbackEndpoint } from "@keble-scraper/contract";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** Changes an endpoint; absent fields stay as they are. */
export const patchCallbackEndpoint = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "callbacks:manage" })
  .input(PatchCallbackEndpoint.safeExtend({ id: Id }))
  .output(CallbackEndpoint)
  .mutation(({ ctx, input: { id, ...patch }, signal }) =>
    unwrap(ctx.services.callbacks.patchEndpoint.mutate({ principal: ctx.principal, id, patch }, ctx.call(signal))),
  );
