import type { Database } from "@keble-scraper/db";
import type { CallbackPolicy } from "@keble-scraper/egress";
import { createProcedures } from "@keble-scraper/service";
import type { SecretBox } from "./secret-box.ts";

/** What an endpoint gets where its registration names nothing. */
export type EndpointDefaults = {
  readonly attemptBudget: number;
  readonly timeoutMs: number;
  readonly maxConcurrency: number;
};

/** What a procedure of callbacks may use. */
export type CallbacksContext = {
  readonly database: Pick<Database, "commands" | "reads">;
  readonly policy: CallbackPolicy;
  readonly secrets: Pick<SecretBox, "seal">;
  readonly defaults: EndpointDefaults;
  /** How long audit rows are kept, in days. */
  readonly auditDays: number;
};

export const { router, procedure } = createProcedures<CallbacksContext>();
