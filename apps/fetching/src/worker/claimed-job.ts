import type { JobLease } from "@keble-scraper/db/commands/fetching";

/** A lease with its deadline on this process's monotonic clock: never later than the database's. */
export type ClaimedJob = JobLease & { readonly deadlineAtMs: number };

/** `startedAtMs` is the moment before the claim was sent, so transit time only brings the deadline closer. */
export function toClaimedJob(lease: JobLease, startedAtMs: number): ClaimedJob {
  return { ...lease, deadlineAtMs: startedAtMs + lease.untilDeadlineMs };
}
