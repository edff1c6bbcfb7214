import { Stats } from "@keble-scraper/contract";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** How the deployment is doing, as it was some seconds ago at the most. */
export const getStats = apiProcedure({ kinds: ["OPERATOR"], scope: null })
  .output(Stats)
  .query(({ ctx, signal }) =>
    unwrap(ctx.services.retention.getStats.query({ principal: ctx.principal }, ctx.call(signal))),
  );
