import { RouteInfoPage } from "@keble-scraper/contract";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** Every way out: whether a job may leave by it, its limits, load, price and spend. */
export const listRoutes = apiProcedure({ kinds: ["OPERATOR"], scope: null })
  .output(RouteInfoPage)
  .query(({ ctx, signal }) =>
    unwrap(ctx.services.fetching.getRouteInfos.query({ principal: ctx.principal }, ctx.call(signal))),
  );
