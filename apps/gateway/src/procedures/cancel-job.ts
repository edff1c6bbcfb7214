import { Id, Job } from "@keble-scraper/contract";
import { z } from "zod";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** Cancels a job at once; a terminal one comes back unchanged. */
export const cancelJob = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "jobs:write" })
  .input(z.strictObject({ id: Id }))
  .output(Job)
  .mutation(({ ctx, input, signal }) =>
    unwrap(ctx.services.intake.cancelJob.mutate({ principal: ctx.principal, id: input.id }, ctx.call(signal))),
  );
