import { createProcedures } from "@keble-scraper/service";
import type { IntakeContext } from "./context.ts";

/** Intake's procedures and router begin here. */
export const { router, procedure } = createProcedures<IntakeContext>();
