import { createProcedures } from "@keble-scraper/service";
import type { FetchingContext } from "./context.ts";

/** Fetching's procedures and router begin here. */
export const { router, procedure } = createProcedures<FetchingContext>();
