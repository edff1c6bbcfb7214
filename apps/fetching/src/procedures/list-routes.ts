import { ListRoutesAnswer } from "@keble-scraper/contract";
import { listQuarantines } from "@keble-scraper/db";
import { procedure } from "../procedure.ts";
import { toRouteStates } from "../route-states.ts";

/** Every way out the product knows, and whether a job may leave by it. Intake asks before it accepts a job. */
export const listRoutes = procedure
  .output(ListRoutesAnswer)
  .query(async ({ ctx }) => toRouteStates(ctx.catalogue, await listQuarantines(ctx.database.commands)));
