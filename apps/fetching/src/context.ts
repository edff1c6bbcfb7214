import type { Route } from "@keble-scraper/contract";
import type { Database } from "@keble-scraper/db";
import type { Catalogue } from "./route-catalogue.ts";

/** What a procedure of fetching may use. */
export type FetchingContext = {
  readonly database: Pick<Database, "commands" | "reads">;
  readonly catalogue: Catalogue;
  /** Of each caller, by all routes; null means no cap. */
  readonly callerCaps: { readonly dayMicros: number | null; readonly monthMicros: number | null };
  /** The age at which an audit row may be purged. */
  readonly auditDays: number;
  /** Wakes the workers that claim jobs of a route; lossy, since they poll besides. */
  wake(route: Route): void;
};
