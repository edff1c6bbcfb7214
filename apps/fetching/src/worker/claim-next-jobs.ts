import type { Sql } from "@keble-scraper/db";
import { claimJobs } from "@keble-scraper/db/commands/fetching";
import { type ClaimedJob, toClaimedJob } from "./claimed-job.ts";

/** Claims jobs for one process. */
export type ClaimNextJobs = (
  freeSlots: number,
  running: readonly ClaimedJob[],
) => Promise<{ readonly leases: readonly ClaimedJob[]; readonly startedAtMs: number }>;

/**
 * A process's claims. It takes a job whose last worker was lost only while it runs none, and one at a time: such jobs
 * then kill at most each other's turn. Among callers it goes round the ring: a claim starts after the caller the last
 * one ended with, and from the beginning once the end was reached.
 */
export function createClaimNextJobs(options: {
  readonly sql: Sql;
  readonly leaseSeconds: number;
  readonly callerRunningMax: number | null;
  monotonicMs(): number;
}): ClaimNextJobs {
  let afterCaller = "";

  async function claimTrusted(slots: number): Promise<Awaited<ReturnType<typeof claimJobs>>> {
    const from = afterCaller;
    const claim = { ...options, transport: "HTTP" as const, of: "TRUSTED" as const };
    const leases = await claimJobs(options.sql, { ...claim, slots, afterCaller: from });
    const last = leases.reduce((max, lease) => (lease.callerId > max ? lease.callerId : max), "");
    const callers = new Set(leases.map((lease) => lease.callerId)).size;
    // Fewer callers than slots: the ring's end was reached.
    afterCaller = callers >= slots ? last : "";
    if (from === "" || leases.length >= slots) return leases;
    const wrapped = await claimJobs(options.sql, { ...claim, slots: slots - leases.length, afterCaller: "" });
    return [...leases, ...wrapped];
  }

  return async (freeSlots, running) => {
    const startedAtMs = options.monotonicMs();
    const suspects = running.some((job) => job.isSuspect)
      ? []
      : await claimJobs(options.sql, { ...options, transport: "HTTP", of: "SUSPECTS", slots: 1, afterCaller: "" });
    const slots = freeSlots - suspects.length;
    const trusted = slots > 0 ? await claimTrusted(slots) : [];
    return { leases: [...suspects, ...trusted].map((lease) => toClaimedJob(lease, startedAtMs)), startedAtMs };
  };
}
