import { CallbackEventDetail, Id } from "@keble-scraper/contract";
import { z } from "zod";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** An event with its deliveries and their tries. */
export const getCallbackEvent = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "callbacks:manage" })
  .input(z.strictObject({ id: Id }))
  .output(CallbackEventDetail)
  .query(({ ctx, input, signal }) =>
    unwrap(ctx.services.callbacks.getEvent.query({ principal: ctx.principal, id: input.id }, ctx.call(signal))),
  );
