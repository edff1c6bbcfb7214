import { z } from "zod";
import { ROUTES } from "../job-sets.ts";

/** A way out and whether this deployment has it; `reason` says why not. */
export const RouteState = z.strictObject({
  route: z.enum(ROUTES),
  available: z.boolean(),
  reason: z.string().max(200).optional(),
});
export type RouteState = z.infer<typeof RouteState>;

/** fetching.listRoutes: every way out that the product knows. */
export const ListRoutesAnswer = z.array(RouteState).max(ROUTES.length);
export type ListRoutesAnswer = z.infer<typeof ListRoutesAnswer>;
