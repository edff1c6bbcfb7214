import { Batch, SubmitBatchRequest, toErrorEnvelope } from "@keble-scraper/contract";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** Accepts all good jobs of a batch in one transaction; a bad one is answered with its error, in its place. */
export const submitBatch = apiProcedure({ kinds: ["SERVICE"], scope: "jobs:write" })
  .input(SubmitBatchRequest)
  .output(Batch)
  .mutation(async ({ ctx, input, signal }) => {
    const { principal, requestId } = ctx;
    const { items } = await unwrap(
      ctx.services.intake.submitBatch.mutate({ principal, jobs: input.jobs }, ctx.call(signal)),
    );
    return { items: items.map((item) => ("job" in item ? item : toErrorEnvelope(item.error, { requestId }))) };
  });
