import { CallbackEndpoint, Id, PatchCallbackEndpoint } from "@keble-scraper/contract";
import { z } from "zod";
import { apiProcedure, unwrap } from "../public-trpc.ts";

const Input = z
  .strictObject({ ...PatchCallbackEndpoint.shape, id: Id })
  // The id is no change.
  .refine((input) => Object.values(input).filter((value) => value !== undefined).length > 1, "Nothing to change.");

/** Changes an endpoint; absent fields stay as they are. */
export const patchCallbackEndpoint = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "callbacks:manage" })
  .input(Input)
  .output(CallbackEndpoint)
  .mutation(({ ctx, input: { id, ...patch }, signal }) =>
    unwrap(ctx.services.callbacks.patchEndpoint.mutate({ principal: ctx.principal, id, patch }, ctx.call(signal))),
  );
