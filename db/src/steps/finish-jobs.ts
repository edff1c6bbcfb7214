import type { Fragment, Tx } from "../database.ts";

/**
 * The only writer of terminal states, as the tail of a statement's WITH list. It reads a CTE `ended` with the columns
 * `id, status, result, failure, artifact_id, uncounted, unnumbered, cost_micros` (jobs that the statement has locked and
 * judged; `uncounted` and `unnumbered`, 0 or 1, take the running attempt back out of the count and out of the ledger's
 * numbers; `cost_micros` is what that attempt cost) and defines
 * `finished` (the jobs as they ended, with `event_id` and `event_state`), so that a job's end, its event and the event's
 * first delivery are one write. A job that is terminal already is not touched: it is absent from `finished`.
 *
 * An event whose type the endpoint filters out is not made. Events of a disabled or deleted endpoint begin as dead
 * letters. A job that ends without an event gets its expiry here; the others get it when the event ends well.
 */
export function finishJobs(sql: Tx, options: { readonly jobRetentionMs: number }): Fragment {
  return sql`
    closing as materialized (
      select e.id, e.status, e.result, e.failure, e.artifact_id, e.uncounted, e.unnumbered, e.cost_micros, j.callback_endpoint_id,
             'job.' || lower(e.status) as event_type,
             ep.id is not null and (ep.events is null or 'job.' || lower(e.status) = any(ep.events)) as wanted,
             case when ep.deleted_at is not null then 'ENDPOINT_DELETED'
                  when ep.disabled_at is not null then 'ENDPOINT_DISABLED' end as closed_reason,
             ep.attempt_budget as delivery_budget
      from ended e
      join jobs j on j.id = e.id
      left join callback_endpoints ep on ep.id = j.callback_endpoint_id
    ),
    terminal as (
      update jobs j
      set status = c.status, result = c.result, failure = c.failure, artifact_id = c.artifact_id,
          finished_at = clock_timestamp(), lease_token = null, lease_until = null, suspected_at = null,
          reserved_micros = null, reserved_on = null, booking = null, deferred_by = null,
          cost_micros = j.cost_micros + c.cost_micros,
          attempts_used = j.attempts_used - c.uncounted, attempt_number = j.attempt_number - c.unnumbered,
          expires_at = case when c.wanted then null else clock_timestamp() + make_interval(secs => ${options.jobRetentionMs / 1000}) end
      from closing c
      where j.id = c.id and j.finished_at is null
      returning j.id, j.caller_id, j.status, j.finished_at
    ),
    event as (
      insert into callback_events (id, job_id, endpoint_id, caller_id, state, type, dead_letter_reason, occurred_at, ended_at)
      select uuid_v7(), t.id, c.callback_endpoint_id, t.caller_id,
             case when c.closed_reason is null then 'PENDING' else 'DEAD_LETTER' end,
             c.event_type, c.closed_reason, t.finished_at,
             case when c.closed_reason is not null then clock_timestamp() end
      from terminal t join closing c on c.id = t.id
      where c.wanted
      returning id, job_id, endpoint_id, state, dead_letter_reason
    ),
    delivery as (
      insert into callback_deliveries (id, event_id, endpoint_id, state, attempt_budget, dead_letter_reason, due_at, ended_at)
      select uuid_v7(), e.id, e.endpoint_id, e.state, c.delivery_budget, e.dead_letter_reason, clock_timestamp(),
             case when e.state = 'DEAD_LETTER' then clock_timestamp() end
      from event e join closing c on c.id = e.job_id
    ),
    finished as (
      select t.id, t.caller_id, t.status, e.id as event_id, e.state as event_state
      from terminal t left join event e on e.job_id = t.id
    )`;
}
