import { localFailure } from "@keble-scraper/contract";
import type { Tx } from "../../database.ts";
import type { EndedJob } from "../../steps/ended-job.ts";
import { finishJobs } from "../../steps/finish-jobs.ts";
import { settleReservations } from "../../steps/settle-reservations.ts";

/**
 * Ends jobs at their deadline with DEADLINE_EXCEEDED: a waiting one at it, without touching the target; a running one
 * after the abort grace, its attempt LOST, settled at its reservation, and its token void. A full batch means that there may be more.
 */
export async function expireJobs(
  sql: Tx,
  options: { readonly limit: number; readonly abortGraceMs: number; readonly jobRetentionMs: number },
): Promise<EndedJob[]> {
  return sql<EndedJob[]>`
    with late as materialized (
      select j.id, clock_timestamp() as now, j.attempt_number, j.lease_token, j.attempt_route as route, j.attempt_started_at,
             j.caller_id, j.reserved_on, j.reserved_micros, coalesce(j.reserved_micros, 0) as cost_micros
      from jobs j
      where j.finished_at is null and j.deadline_at <= statement_timestamp()
        and (j.lease_token is null
             or j.deadline_at + make_interval(secs => ${options.abortGraceMs / 1000}) <= statement_timestamp())
      order by j.deadline_at
      limit ${options.limit}
      for update skip locked
    ),
    lost as (
      insert into attempts (id, job_id, outcome, ordinal, lease_token, route, failure, cost_reserved_micros, cost_micros,
        started_at, finished_at)
      select uuid_v7(), l.id, 'LOST', l.attempt_number, l.lease_token, l.route,
             ${sql.json(localFailure("WORKER_LOST"))}::jsonb, l.cost_micros, l.cost_micros, l.attempt_started_at, l.now
      from late l where l.lease_token is not null
    ),
    spent as (select * from late where reserved_micros is not null),
    ${settleReservations(sql)},
    ended as (
      select l.id, 'FAILED' as status, null::jsonb as result, ${sql.json(localFailure("DEADLINE_EXCEEDED"))}::jsonb as failure,
             null::uuid as artifact_id, 0 as uncounted, 0 as unnumbered, l.cost_micros
      from late l
    ),
    ${finishJobs(sql, options)}
    select id, status, event_id as "eventId", event_state as "eventState", caller_id as "callerId" from finished`;
}
