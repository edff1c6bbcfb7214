import { localFailure } from "@keble-scraper/contract";
import type { Tx } from "../../database.ts";
import { finishJobs } from "../../steps/finish-jobs.ts";
import type { EndedJob } from "../../steps/ended-job.ts";
import type { HeldLease } from "./renew-leases.ts";

/**
 * Gives back attempts of which no byte was sent: the count goes back, the ledger gets no row, the job is due again at
 * `dueInMs` (at least a second ahead, so that a release can't spin). A job whose due time would be at or past its
 * deadline ends at once with DEADLINE_EXCEEDED, because capacity asked for the wait.
 */
export async function releaseJobs(
  sql: Tx,
  leases: readonly (HeldLease & { readonly dueInMs: number })[],
  options: { readonly jobRetentionMs: number },
): Promise<EndedJob[]> {
  if (leases.length === 0) return [];
  return sql<EndedJob[]>`
    with input as (
      select * from unnest(${leases.map((lease) => lease.id)}::uuid[], ${leases.map((lease) => lease.token)}::uuid[],
        ${leases.map((lease) => Math.max(1000, Math.ceil(lease.dueInMs)))}::float8[]) as l (id, token, due_in_ms)
    ),
    held as materialized (
      select j.id, j.deadline_at, ceil_ms(clock_timestamp() + make_interval(secs => i.due_in_ms / 1000)) as due_at
      from jobs j join input i on i.id = j.id
      where j.lease_token = i.token and j.lease_until > clock_timestamp()
      order by j.id
      for update of j
    ),
    ended as (
      select h.id, 'FAILED' as status, null::jsonb as result, ${sql.json(localFailure("DEADLINE_EXCEEDED"))}::jsonb as failure,
             null::uuid as artifact_id, 1 as uncounted, 1 as unnumbered
      from held h where h.due_at >= h.deadline_at
    ),
    counted_back as (
      update jobs j
      set status = 'QUEUED', attempts_used = j.attempts_used - 1, attempt_number = j.attempt_number - 1,
          lease_token = null, lease_until = null, due_at = h.due_at
      from held h
      where j.id = h.id and h.due_at < h.deadline_at
      returning j.id
    ),
    ${finishJobs(sql, options)}
    select id, status, event_id as "eventId", event_state as "eventState", caller_id as "callerId" from finished`;
}
