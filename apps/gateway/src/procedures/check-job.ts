import { CheckJobRequest, JobCheck, toErrorEnvelope } from "@keble-scraper/contract";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** What a submit of the same body would meet. Nothing is created. */
export const checkJob = apiProcedure({ kinds: ["SERVICE"], scope: "jobs:write" })
  .input(CheckJobRequest)
  .output(JobCheck)
  // A mutation, so that its body travels as a body.
  .mutation(async ({ ctx, input, signal }) => {
    const { principal, requestId } = ctx;
    const { error, ...check } = await unwrap(
      ctx.services.intake.checkJob.query({ principal, body: input }, ctx.call(signal)),
    );
    return error === undefined ? check : { ...check, ...toErrorEnvelope(error, { requestId }) };
  });
