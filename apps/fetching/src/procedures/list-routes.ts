import { ListRoutesAnswer } from "@keble-scraper/contract";
import { procedure } from "../procedure.ts";

/** Every way out the product knows, and whether this deployment has it. Intake asks before it accepts a job. */
export const listRoutes = procedure.output(ListRoutesAnswer).query(({ ctx }) => [...ctx.routes]);
