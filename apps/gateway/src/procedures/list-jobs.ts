import { JobPage, JobQuery } from "@keble-scraper/contract";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** A page of jobs, newest first: a service's own caller's, or everybody's to an operator. */
export const listJobs = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "jobs:read" })
  .input(JobQuery)
  .output(JobPage)
  .query(({ ctx, input, signal }) =>
    unwrap(ctx.services.intake.listJobs.query({ principal: ctx.principal, query: input }, ctx.call(signal))),
  );
