import type { Sql } from "@keble-scraper/db";
import { claimJobs, type JobLease } from "@keble-scraper/db/commands/fetching";
import { type ClaimedJob, toClaimedJob } from "./claimed-job.ts";

/** Claims jobs for one process. */
export type ClaimNextJobs = (
  freeSlots: number,
  running: readonly ClaimedJob[],
) => Promise<{ readonly leases: readonly ClaimedJob[]; readonly startedAtMs: number }>;

/**
 * A process's claims. It takes a job whose last worker was lost only while it runs none, and one at a time: such jobs
 * then kill at most each other's turn. On both rings of callers a claim goes on where the last one ended. When the second
 * of two claims fails, what the first one took is returned: leases that nobody knows of would be lost.
 */
export function createClaimNextJobs(options: {
  readonly sql: Sql;
  readonly transport: "HTTP" | "RENDER";
  readonly leaseSeconds: number;
  readonly callerRunningMax: number | null;
  monotonicMs(): number;
  /** Told of a second claim that failed. */
  onPartial(error: unknown): void;
}): ClaimNextJobs {
  const afterCaller = { TRUSTED: "", SUSPECTS: "" };

  async function claim(of: "TRUSTED" | "SUSPECTS", slots: number): Promise<readonly JobLease[]> {
    const { sql, transport, leaseSeconds, callerRunningMax } = options;
    const batch = await claimJobs(sql, {
      transport,
      of,
      slots,
      leaseSeconds,
      callerRunningMax,
      afterCaller: afterCaller[of],
    });
    if (batch.lastCaller !== null) afterCaller[of] = batch.lastCaller;
    return batch.leases;
  }

  async function claimTrusted(slots: number, taken: readonly JobLease[]): Promise<readonly JobLease[]> {
    if (slots <= 0) return [];
    try {
      return await claim("TRUSTED", slots);
    } catch (error) {
      if (taken.length === 0) throw error;
      options.onPartial(error);
      return [];
    }
  }

  return async (freeSlots, running) => {
    const startedAtMs = options.monotonicMs();
    const suspects = running.some((job) => job.isSuspect) ? [] : await claim("SUSPECTS", 1);
    const trusted = await claimTrusted(freeSlots - suspects.length, suspects);
    return { leases: [...suspects, ...trusted].map((lease) => toClaimedJob(lease, startedAtMs)), startedAtMs };
  };
}
