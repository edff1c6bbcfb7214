import { Id } from "@keble-scraper/contract";
import { z } from "zod";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** Deletes an endpoint. CONFLICT while it has open events, unless `force`: then they become dead letters. */
export const deleteCallbackEndpoint = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "callbacks:manage" })
  .input(z.strictObject({ id: Id, force: z.boolean().default(false) }))
  .output(z.null())
  .mutation(({ ctx, input, signal }) =>
    unwrap(ctx.services.callbacks.deleteEndpoint.mutate({ principal: ctx.principal, ...input }, ctx.call(signal))),
  );
