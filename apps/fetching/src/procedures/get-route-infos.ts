import { GetRouteInfosAnswer, GetRouteInfosCall, ok } from "@keble-scraper/contract";
import { forOperators } from "../for-operators.ts";
import { getRouteInfos as readRouteInfos } from "../get-route-infos.ts";
import { procedure } from "../procedure.ts";

/** Every way out as operators see it. */
export const getRouteInfos = procedure
  .input(GetRouteInfosCall)
  .output(GetRouteInfosAnswer)
  .query(({ ctx, input: { principal } }) =>
    forOperators(principal, async () => ok({ items: await readRouteInfos(ctx), nextCursor: null })),
  );
