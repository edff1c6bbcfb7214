import { localFailure } from "@keble-scraper/contract";
import type { Tx } from "../../database.ts";
import type { EndedJob } from "../../steps/ended-job.ts";
import { finishJobs } from "../../steps/finish-jobs.ts";

/**
 * Ends jobs at their deadline with DEADLINE_EXCEEDED: a waiting one at it, without touching the target; a running one
 * after the abort grace, its attempt LOST and its token void. A full batch means that there may be more.
 */
export async function expireJobs(
  sql: Tx,
  options: { readonly limit: number; readonly abortGraceMs: number; readonly jobRetentionMs: number },
): Promise<EndedJob[]> {
  return sql<EndedJob[]>`
    with late as materialized (
      select j.id, clock_timestamp() as now, j.attempt_number, j.lease_token, j.attempt_route, j.attempt_started_at
      from jobs j
      where j.finished_at is null and j.deadline_at <= statement_timestamp()
        and (j.lease_token is null
             or j.deadline_at + make_interval(secs => ${options.abortGraceMs / 1000}) <= statement_timestamp())
      order by j.deadline_at
      limit ${options.limit}
      for update skip locked
    ),
    lost as (
      insert into attempts (id, job_id, outcome, ordinal, lease_token, route, failure, started_at, finished_at)
      select uuid_v7(), l.id, 'LOST', l.attempt_number, l.lease_token, l.attempt_route,
             ${sql.json(localFailure("WORKER_LOST"))}::jsonb, l.attempt_started_at, l.now
      from late l where l.lease_token is not null
    ),
    ended as (
      select l.id, 'FAILED' as status, null::jsonb as result, ${sql.json(localFailure("DEADLINE_EXCEEDED"))}::jsonb as failure,
             null::uuid as artifact_id, 0 as uncounted, 0 as unnumbered
      from late l
    ),
    ${finishJobs(sql, options)}
    select id, status, event_id as "eventId", event_state as "eventState", caller_id as "callerId" from finished`;
}
