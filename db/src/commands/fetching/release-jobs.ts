import { localFailure, type LocalFailure } from "@keble-scraper/contract";
import type { Tx } from "../../database.ts";
import type { EndedJob } from "../../steps/ended-job.ts";
import { finishJobs } from "../../steps/finish-jobs.ts";
import { settleReservations } from "../../steps/settle-reservations.ts";
import type { Booking } from "./job-lease.ts";
import type { HeldLease } from "./renew-leases.ts";

/** An attempt that is given back. Times count from now. */
export type Release = HeldLease & {
  /** When it is worth trying again, spread over those that wait; at least a second ahead. NEXT_ROUTE is due at once. */
  readonly dueInMs: number;
  /** The earliest time at which it could go, before any spreading; absent: `dueInMs`. */
  readonly horizonInMs?: number | undefined;
  /** What admission booked for it; null: nothing; absent: what the job's row says. */
  readonly booking?: Booking | null | undefined;
  /** NEXT_ROUTE, when a cap closes this attempt's route to the job; absent: SAME_ROUTE. */
  readonly next?: "SAME_ROUTE" | "NEXT_ROUTE" | undefined;
  /** How a job ends that has no next route; absent: COST_CAP_EXCEEDED. */
  readonly failure?: LocalFailure | undefined;
};

/**
 * Gives back attempts of which no byte was sent: the count goes back, the ledger gets no row, what was reserved is free
 * again, what was booked stays with the job. A job whose horizon is at or past its deadline ends at once with
 * DEADLINE_EXCEEDED, because capacity asked for the wait; else it is due a second before its deadline at the latest.
 */
export async function releaseJobs(
  sql: Tx,
  leases: readonly Release[],
  options: { readonly jobRetentionMs: number },
): Promise<EndedJob[]> {
  if (leases.length === 0) return [];
  return sql<EndedJob[]>`
    with input as materialized (
      select * from jsonb_to_recordset(${sql.json(leases.map(toInput))}) as l (
        id uuid, token uuid, due_in_ms float8, horizon_in_ms float8, booking jsonb, keeps_booking boolean,
        is_next boolean, failure jsonb)
    ),
    held as materialized (
      select j.id, j.caller_id, j.attempt_route as route, j.reserved_on, j.reserved_micros, 0 as cost_micros,
             j.deadline_at, array_position(j.routes, j.attempt_route) as route_place, cardinality(j.routes) as route_count,
             case when i.keeps_booking then j.booking else i.booking end as booking, i.is_next, i.failure,
             clock_timestamp() as now, i.due_in_ms, i.horizon_in_ms
      from jobs j join input i on i.id = j.id
      where j.lease_token = i.token and j.lease_until > clock_timestamp()
      order by j.id
      for update of j
    ),
    timed as materialized (
      select h.*, case when h.is_next then ceil_ms(h.now)
                       else greatest(ceil_ms(h.now + interval '1 s'),
                                     least(ceil_ms(h.now + make_interval(secs => h.due_in_ms / 1000)),
                                           h.deadline_at - interval '1 s')) end as due_at
      from held h
    ),
    judged as materialized (
      select t.*,
             case when t.now + make_interval(secs => t.horizon_in_ms / 1000) >= t.deadline_at or t.due_at >= t.deadline_at
                    then ${sql.json(localFailure("DEADLINE_EXCEEDED"))}::jsonb
                  when t.is_next and t.route_place >= t.route_count then t.failure end as ending
      from timed t
    ),
    spent as (select * from held where reserved_micros is not null),
    ${settleReservations(sql)},
    ended as (
      select g.id, 'FAILED' as status, null::jsonb as result, g.ending as failure,
             null::uuid as artifact_id, 1 as uncounted, 1 as unnumbered, 0 as cost_micros
      from judged g where g.ending is not null
    ),
    counted_back as (
      update jobs j
      set status = 'QUEUED', attempts_used = j.attempts_used - 1, attempt_number = j.attempt_number - 1,
          lease_token = null, lease_until = null, reserved_micros = null, reserved_on = null, due_at = g.due_at,
          booking = g.booking, route_index = case when g.is_next then g.route_place else j.route_index end
      from judged g
      where j.id = g.id and g.ending is null
      returning j.id
    ),
    ${finishJobs(sql, options)}
    select id, status, event_id as "eventId", event_state as "eventState", caller_id as "callerId" from finished`;
}

function toInput(release: Release) {
  const isNext = release.next === "NEXT_ROUTE";
  return {
    id: release.id,
    token: release.token,
    due_in_ms: isNext ? 0 : release.dueInMs,
    horizon_in_ms: isNext ? 0 : (release.horizonInMs ?? release.dueInMs),
    booking: release.booking ?? null,
    keeps_booking: release.booking === undefined,
    is_next: isNext,
    failure: release.failure ?? localFailure("COST_CAP_EXCEEDED"),
  };
}
