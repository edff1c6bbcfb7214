import { Usage, UsageQuery } from "@keble-scraper/contract";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** What was used in a time, by route or by a label: a service's own caller's, an operator's of all or of one. */
export const getUsage = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "jobs:read" })
  .input(UsageQuery)
  .output(Usage)
  .query(({ ctx, input, signal }) =>
    unwrap(ctx.services.fetching.getUsage.query({ principal: ctx.principal, query: input }, ctx.call(signal))),
  );
