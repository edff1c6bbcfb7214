import type { Stats } from "@keble-scraper/contract";
import { createProcedures } from "@keble-scraper/service";

/** What a procedure of retention may use. */
export type RetentionContext = {
  /** How the deployment is doing, as it was a few seconds ago at the most. */
  readStats(): Promise<Stats>;
};

export const { router, procedure } = createProcedures<RetentionContext>();
