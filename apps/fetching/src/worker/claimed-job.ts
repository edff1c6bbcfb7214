import type { JobLease } from "@keble-scraper/db/commands/fetching";

/**
 * A lease on this process's monotonic clock: its deadline, never later than the database's, and the moment before its claim
 * was sent.
 */
export type ClaimedJob = JobLease & { readonly deadlineAtMs: number; readonly claimedAtMs: number };

/** `startedAtMs` is the moment before the claim was sent, so transit time only brings the deadline closer. */
export function toClaimedJob(lease: JobLease, startedAtMs: number): ClaimedJob {
  return { ...lease, claimedAtMs: startedAtMs, deadlineAtMs: startedAtMs + lease.untilDeadlineMs };
}
