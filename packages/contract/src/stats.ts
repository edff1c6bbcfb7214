import { z } from "zod";
import { Time } from "./time.ts";

/** A count that stops at a bound: `isLowerBound` says that there are more. */
export const BoundedCount = z.strictObject({ count: z.int().min(0), isLowerBound: z.boolean() });
export type BoundedCount = z.infer<typeof BoundedCount>;

/** A heap of rows and how old its oldest is, in seconds; null: there is none. */
export const Backlog = BoundedCount.extend({ oldestSeconds: z.number().min(0).nullable() });
export type Backlog = z.infer<typeof Backlog>;

/** The kinds of row that a purge deletes, in the order in which it takes them. */
export const PURGE_KINDS = [
  "events",
  "jobs",
  "cache",
  "flights",
  "tombstones",
  "findings",
  "budgets",
  "audit",
] as const;
export type PurgeKind = (typeof PURGE_KINDS)[number];

/** How the deployment is doing. */
export const Stats = z.strictObject({
  observedAt: Time,
  openJobs: z.strictObject({ queued: BoundedCount, waiting: BoundedCount, running: BoundedCount }),
  /** Jobs that are due and not yet taken. */
  due: Backlog,
  callbacks: z.strictObject({ due: Backlog, deadLetters: Backlog }),
  /**
   * Jobs that ended in each hour (UTC), the last 24 and the one that runs, oldest first, as far as their rows are still
   * there. `isLowerBound`: there were more. Hours that could not be counted in the time of one answer are missing, the
   * oldest first; a later answer has them.
   */
  endedByHour: z
    .array(
      z.strictObject({
        hour: Time,
        succeeded: z.int().min(0),
        failed: z.int().min(0),
        cancelled: z.int().min(0),
        isLowerBound: z.boolean(),
      }),
    )
    .max(25),
  purge: z.strictObject({
    /** Of each kind and minute. */
    rowsPerMinute: z.int().min(1),
    /** What has gone in the minute that runs, and what has expired and not gone. */
    kinds: z.record(z.enum(PURGE_KINDS), z.strictObject({ purged: z.int().min(0), backlog: Backlog })),
  }),
  store: z.strictObject({
    /** Artifacts whose holds are to be looked at, and objects whose deletion is due. */
    artifactsToReview: Backlog,
    objectsToDelete: Backlog,
    findings: z.strictObject({ missing: BoundedCount, damaged: BoundedCount, orphans: BoundedCount }),
    /** When the last whole pass over the store's listing ended; null: none has. */
    lastListingEndedAt: Time.nullable(),
  }),
});
export type Stats = z.infer<typeof Stats>;
