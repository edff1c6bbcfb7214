import { localFailure } from "@keble-scraper/contract";
import type { Tx } from "../../database.ts";
import type { EndedJob } from "../../steps/ended-job.ts";
import { finishJobs } from "../../steps/finish-jobs.ts";
import { settleReservations } from "../../steps/settle-reservations.ts";

/**
 * Ends attempts whose lease expired: LOST with WORKER_LOST, never a network failure, settled at their reservation. The job is
 * due again at once while its own budget and deadline allow, marked as suspect; else it ends FAILED. Returns how many
 * leases were recovered and which jobs ended; a full batch means that there may be more.
 */
export async function recoverLeases(
  sql: Tx,
  options: { readonly limit: number; readonly jobRetentionMs: number },
): Promise<{ recovered: number; ended: EndedJob[] }> {
  const rows = await sql<{ recovered: number; ended: EndedJob[] | null }[]>`
    with expired as materialized (
      select j.id, clock_timestamp() as now, j.attempt_number, j.lease_token, j.attempt_route as route, j.attempt_started_at,
             j.caller_id, j.reserved_on, j.reserved_micros, coalesce(j.reserved_micros, 0) as cost_micros,
             j.attempts_used >= j.attempt_budget as is_spent, j.deadline_at <= clock_timestamp() as is_late
      from jobs j
      where j.lease_token is not null and j.lease_until <= statement_timestamp()
      order by j.lease_until
      limit ${options.limit}
      for update skip locked
    ),
    lost as (
      insert into attempts (id, job_id, outcome, ordinal, lease_token, route, failure, cost_reserved_micros, cost_micros,
        started_at, finished_at)
      select uuid_v7(), e.id, 'LOST', e.attempt_number, e.lease_token, e.route,
             ${sql.json(localFailure("WORKER_LOST"))}::jsonb, e.cost_micros, e.cost_micros, e.attempt_started_at, e.now
      from expired e
    ),
    spent as (select * from expired where reserved_micros is not null),
    ${settleReservations(sql)},
    ended as (
      select e.id, 'FAILED' as status, null::jsonb as result, null::uuid as artifact_id, 0 as uncounted, 0 as unnumbered,
             e.cost_micros,
             case when e.is_late then ${sql.json(localFailure("DEADLINE_EXCEEDED"))}::jsonb
                  else ${sql.json(localFailure("WORKER_LOST", { disposition: "TERMINAL" }))}::jsonb end as failure
      from expired e where e.is_spent or e.is_late
    ),
    requeued as (
      update jobs j
      set status = 'QUEUED', lease_token = null, lease_until = null, due_at = ceil_ms(clock_timestamp()),
          suspected_at = clock_timestamp(), reserved_micros = null, reserved_on = null, booking = null,
          cost_micros = j.cost_micros + e.cost_micros
      from expired e
      where j.id = e.id and not (e.is_spent or e.is_late)
      returning j.id
    ),
    ${finishJobs(sql, options)}
    select (select count(*)::int from expired) as recovered,
           (select jsonb_agg(jsonb_build_object('id', id, 'callerId', caller_id, 'status', status, 'eventId', event_id,
              'eventState', event_state)) from finished) as ended`;
  return { recovered: rows[0]?.recovered ?? 0, ended: rows[0]?.ended ?? [] };
}
