import { Id } from "@keble-scraper/contract";
import { z } from "zod";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** Erases an ended job and its hold on bytes. CONFLICT while it, its callback or a delivery is open, or a dead letter. */
export const deleteJob = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "jobs:write" })
  .input(z.strictObject({ id: Id }))
  .output(z.null())
  .mutation(({ ctx, input, signal }) => {
    const { principal, requestId } = ctx;
    return unwrap(ctx.services.intake.deleteJob.mutate({ principal, id: input.id, requestId }, ctx.call(signal)));
  });
