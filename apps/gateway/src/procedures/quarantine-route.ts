import { QuarantineRoute, RouteInfo, ROUTES } from "@keble-scraper/contract";
import { z } from "zod";
import { apiProcedure, unwrap } from "../public-trpc.ts";

const Input = QuarantineRoute.safeExtend({ route: z.enum(ROUTES) });

/** Closes a route to jobs: those that list it take their next route or wait. A quarantined one gets the new note and end. */
export const quarantineRoute = apiProcedure({ kinds: ["OPERATOR"], scope: null })
  .input(Input)
  .output(RouteInfo)
  .mutation(({ ctx, input: { route, ...input }, signal }) =>
    unwrap(ctx.services.fetching.quarantineRoute.mutate({ principal: ctx.principal, route, input }, ctx.call(signal))),
  );
