import type { Database } from "@keble-scraper/db";
import type { AllowedTargets } from "@keble-scraper/egress";
import type { EndedAnnouncer } from "@keble-scraper/service";
import type { JobWaits } from "./job-waits.ts";
import type { QueueMeter } from "./queue-meter.ts";
import type { RouteCatalogue } from "./route-catalogue.ts";

/** What a procedure of intake may use. */
export type IntakeContext = {
  readonly database: Database;
  readonly routes: RouteCatalogue;
  readonly queue: QueueMeter;
  readonly waits: JobWaits;
  readonly allowedTargets: AllowedTargets;
  /** The operator's ceiling for `limits.maxBodyBytes`. */
  readonly bodyBytesMax: number;
  readonly jobRetentionMs: number;
  /** How long audit rows are kept, in days. */
  readonly auditDays: number;
  ring(payload: { readonly transport: string; readonly jobId: string }): void;
  /** Tells of jobs that ended, after the commit. */
  readonly announceEnded: EndedAnnouncer;
  /** Tells workers to let go of these jobs. */
  announceCancelled(ids: readonly string[]): void;
};
