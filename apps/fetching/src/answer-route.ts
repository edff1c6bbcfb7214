import { type Route, type RouteInfoAnswer, ok } from "@keble-scraper/contract";
import type { FetchingContext } from "./context.ts";
import { getRouteInfos } from "./get-route-infos.ts";

/** One route as it is now. */
export async function answerRoute(context: FetchingContext, route: Route): Promise<RouteInfoAnswer> {
  const info = (await getRouteInfos(context)).find((candidate) => candidate.route === route);
  if (info === undefined) throw new Error("a route of the contract is not in the catalogue");
  return ok(info);
}
