import type { Tx } from "../../database.ts";
import type { EndedJob } from "../../steps/ended-job.ts";
import { finishJobs } from "../../steps/finish-jobs.ts";
import { settleReservations } from "../../steps/settle-reservations.ts";

/**
 * Cancels a job at once: terminal, its running attempt ended as CANCELLED and settled at its
 * reservation, its token void. `callerId` null is an
 * operator, who may cancel any. Returns null when there is nothing to cancel: no such job of that caller, or it is
 * terminal already.
 */
export async function cancelJob(
  sql: Tx,
  target: { readonly id: string; readonly callerId: string | null },
  options: { readonly jobRetentionMs: number },
): Promise<EndedJob | null> {
  const [ended] = await sql<EndedJob[]>`
    with target as materialized (
      select j.id, clock_timestamp() as now, j.attempt_number, j.lease_token, j.attempt_route as route, j.attempt_started_at,
             j.caller_id, j.reserved_on, j.reserved_micros, coalesce(j.reserved_micros, 0) as cost_micros
      from jobs j
      where j.id = ${target.id} and j.finished_at is null and (${target.callerId}::text is null or j.caller_id = ${target.callerId})
      for update
    ),
    cancelled as (
      insert into attempts (id, job_id, outcome, ordinal, lease_token, route, cost_reserved_micros, cost_micros, started_at, finished_at)
      select uuid_v7(), t.id, 'CANCELLED', t.attempt_number, t.lease_token, t.route, t.cost_micros, t.cost_micros,
             t.attempt_started_at, t.now
      from target t where t.lease_token is not null
    ),
    spent as (select * from target where reserved_micros is not null),
    ${settleReservations(sql)},
    ended as (
      select t.id, 'CANCELLED' as status, null::jsonb as result, null::jsonb as failure, null::uuid as artifact_id,
             0 as uncounted, 0 as unnumbered, t.cost_micros
      from target t
    ),
    ${finishJobs(sql, options)}
    select id, status, event_id as "eventId", event_state as "eventState", caller_id as "callerId" from finished`;
  return ended ?? null;
}
