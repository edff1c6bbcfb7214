import { CallbackEndpoint, Id } from "@keble-scraper/contract";
import { z } from "zod";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** An endpoint, without its secret. */
export const getCallbackEndpoint = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "callbacks:manage" })
  .input(z.strictObject({ id: Id }))
  .output(CallbackEndpoint)
  .query(({ ctx, input, signal }) =>
    unwrap(ctx.services.callbacks.getEndpoint.query({ principal: ctx.principal, id: input.id }, ctx.call(signal))),
  );
