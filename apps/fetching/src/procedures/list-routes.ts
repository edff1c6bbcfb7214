import { ROUTES } from "@keble-scraper/contract";
import { z } from "zod";
import { procedure } from "../procedure.ts";

const RouteStates = z.array(
  z.strictObject({ route: z.enum(ROUTES), available: z.boolean(), reason: z.string().max(200).optional() }),
);

/** Every way out the product knows, and whether this deployment has it. Intake asks before it accepts a job. */
export const listRoutes = procedure.output(RouteStates).query(({ ctx }) => [...ctx.routes]);
