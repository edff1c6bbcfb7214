import { RouteInfo, ROUTES } from "@keble-scraper/contract";
import { z } from "zod";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** Opens a quarantined route again, and resumes the jobs that waited for it. One that is open stays so. */
export const releaseRoute = apiProcedure({ kinds: ["OPERATOR"], scope: null })
  .input(z.strictObject({ route: z.enum(ROUTES) }))
  .output(RouteInfo)
  .mutation(({ ctx, input: { route }, signal }) =>
    unwrap(ctx.services.fetching.releaseRoute.mutate({ principal: ctx.principal, route }, ctx.call(signal))),
  );
