import type { SpooledBody } from "@keble-scraper/artifact-store";
import type { AttemptReport } from "@keble-scraper/db/commands/fetching";

/**
 * What became of a run. RELEASED: no byte was sent, the attempt goes back uncounted. ABANDONED: the lease is no longer
 * ours or the job was cancelled, there is nothing to write. `body` stays in the spool until the report has committed.
 */
export type AttemptOutcome =
  | { readonly kind: "REPORTED"; readonly report: AttemptReport; readonly body: SpooledBody | null }
  | { readonly kind: "RELEASED"; readonly dueInMs: number }
  | { readonly kind: "ABANDONED" };
