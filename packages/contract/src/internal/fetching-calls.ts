import { z } from "zod";
import { BudgetPage, BudgetQuery } from "../budget.ts";
import { Micros } from "../id.ts";
import { ROUTES } from "../job-sets.ts";
import { Principal } from "../principal.ts";
import { QuarantineRoute, ROUTE_HEALTH, RouteInfo, RouteInfoPage } from "../route-info.ts";
import { Usage, UsageQuery } from "../usage.ts";
import { resultOf } from "./result-of.ts";

/** The wishes of `egress` that a route may be able to meet. */
export const EGRESS_WISHES = ["country", "stickyKey"] as const;
export type EgressWish = (typeof EGRESS_WISHES)[number];

/** A way out, as far as accepting a job depends on it. `reason` says why no job leaves by it now, in words for callers. */
export const RouteState = z.strictObject({
  route: z.enum(ROUTES),
  health: z.enum(ROUTE_HEALTH),
  reason: z.string().max(200).optional(),
  /** Per unit of the route; 0 when it is free. */
  priceMicros: Micros,
  /** The hard limit of one attempt. */
  attemptMs: z.int().min(1),
  /** What of `egress` it can narrow. */
  narrows: z.array(z.enum(EGRESS_WISHES)).max(EGRESS_WISHES.length),
});
export type RouteState = z.infer<typeof RouteState>;

/** fetching.listRoutes: every way out that the product knows. */
export const ListRoutesAnswer = z.array(RouteState).max(ROUTES.length);
export type ListRoutesAnswer = z.infer<typeof ListRoutesAnswer>;

/** fetching.getRouteInfos: the same for operators, with money and load. */
export const GetRouteInfosCall = z.strictObject({ principal: Principal });
export type GetRouteInfosCall = z.infer<typeof GetRouteInfosCall>;
export const GetRouteInfosAnswer = resultOf(RouteInfoPage);
export type GetRouteInfosAnswer = z.infer<typeof GetRouteInfosAnswer>;

/** fetching.quarantineRoute: a quarantined route gets the new note and end. An end that is past is INVALID_REQUEST. */
export const QuarantineRouteCall = z.strictObject({
  principal: Principal,
  route: z.enum(ROUTES),
  input: QuarantineRoute,
});
export type QuarantineRouteCall = z.infer<typeof QuarantineRouteCall>;
/** fetching.releaseRoute: a route that is not quarantined stays as it is. */
export const ReleaseRouteCall = z.strictObject({ principal: Principal, route: z.enum(ROUTES) });
export type ReleaseRouteCall = z.infer<typeof ReleaseRouteCall>;
/** The route as it is now. */
export const RouteInfoAnswer = resultOf(RouteInfo);
export type RouteInfoAnswer = z.infer<typeof RouteInfoAnswer>;

/** fetching.listBudgets. */
export const ListBudgetsCall = z.strictObject({ principal: Principal, query: BudgetQuery });
export type ListBudgetsCall = z.infer<typeof ListBudgetsCall>;
export const ListBudgetsAnswer = resultOf(BudgetPage);
export type ListBudgetsAnswer = z.infer<typeof ListBudgetsAnswer>;

/** fetching.getUsage: a service's own caller's, whatever `query.callerId` says. */
export const GetUsageCall = z.strictObject({ principal: Principal, query: UsageQuery });
export type GetUsageCall = z.infer<typeof GetUsageCall>;
export const GetUsageAnswer = resultOf(Usage);
export type GetUsageAnswer = z.infer<typeof GetUsageAnswer>;
