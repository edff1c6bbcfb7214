import type { Tx } from "../database.ts";
import type { QuarantineRow } from "./quarantine-row.ts";

/** The routes that are quarantined now, at most one row each. */
export async function listQuarantines(sql: Tx): Promise<QuarantineRow[]> {
  return sql<QuarantineRow[]>`
    select route, job_id as "jobId", reason, native_code as "nativeCode", actor, note, quarantined_at as "quarantinedAt",
           lifts_at as "liftsAt", probed_at as "probedAt"
    from route_quarantines
    where lifts_at is null or lifts_at > clock_timestamp()
    order by route`;
}
