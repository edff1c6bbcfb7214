import type { Route } from "@keble-scraper/contract";
import type { Sql } from "../../database.ts";
import { type Actor, appendAudit } from "../../steps/append-audit.ts";
import { resumeDeferredJobs } from "./resume-deferred-jobs.ts";

/** Jobs of one statement: a batch holds its locks for milliseconds. */
const BATCH_JOBS = 1_000;

/**
 * Ends a route's quarantine, with its audit row in one transaction, and makes the jobs that waited for it due, in batches
 * after the commit; what a crash leaves of them, `sweepPassedHolds` resumes. `reason` spares a quarantine for another one
 * (absent: any goes). False: the route was not quarantined, or was spared.
 */
export async function releaseRoute(
  sql: Sql,
  release: {
    readonly route: Route;
    readonly reason?: string;
    readonly by: Actor;
    readonly retentionDays?: number | undefined;
  },
): Promise<boolean> {
  const { route, reason = null, by, retentionDays } = release;
  const wasQuarantined = await sql.begin(async (tx) => {
    const [row] = await tx<{ reason: string; actor: string; stood: boolean }[]>`
      delete from route_quarantines where route = ${route} and reason = coalesce(${reason}::text, reason)
      returning reason, actor, coalesce(lifts_at > clock_timestamp(), true) as stood`;
    if (row?.stood !== true) return false;
    const details = { reason: row.reason, quarantinedBy: row.actor };
    await appendAudit(
      tx,
      { action: "route.released", by, callerId: null, subject: `route:${route}`, details },
      retentionDays,
    );
    return true;
  });
  if (wasQuarantined) {
    while ((await resumeDeferredJobs(sql, { deferredBy: `route:${route}`, limit: BATCH_JOBS })) >= BATCH_JOBS);
  }
  return wasQuarantined;
}
