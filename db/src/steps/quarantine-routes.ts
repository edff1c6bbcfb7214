import type { Fragment, Tx } from "../database.ts";
import { AUDIT_RETENTION_DAYS } from "./append-audit.ts";

/** The reason of a quarantine that a person set: nothing but a person or its own end lifts it. */
const OPERATOR_REASON = "OPERATOR";

/**
 * Quarantines routes, as a part of a statement's WITH list. It reads a CTE `closing_routes` with the columns `route,
 * job_id, reason, native_code, actor, note, request_id, quarantined_at, lifts_at` (null: until somebody releases it), at most
 * one row a route, and defines `closed_routes`: the rows that were written, each with its audit row. A quarantine that stands is
 * replaced by an operator's, and by one that lasts a minute longer unless it is an operator's.
 */
export function quarantineRoutes(sql: Tx, auditRetentionDays = AUDIT_RETENTION_DAYS): Fragment {
  return sql`
    closed_routes as (
      insert into route_quarantines as q (route, job_id, reason, native_code, actor, note, quarantined_at, lifts_at)
      select c.route, c.job_id, c.reason, c.native_code, c.actor, c.note, c.quarantined_at, c.lifts_at
      from closing_routes c order by c.route
      on conflict (route) do update
      set job_id = excluded.job_id, reason = excluded.reason, native_code = excluded.native_code, actor = excluded.actor,
          note = excluded.note, quarantined_at = excluded.quarantined_at, lifts_at = excluded.lifts_at,
          probed_at = case when q.reason = excluded.reason then q.probed_at end
      where excluded.reason = ${OPERATOR_REASON} or q.lifts_at <= clock_timestamp()
         -- A minute, so that many attempts that fail alike write one row and one line of the audit.
         or (q.reason <> ${OPERATOR_REASON} and q.lifts_at is not null
             and (excluded.lifts_at is null or excluded.lifts_at > q.lifts_at + interval '1 minute'))
      returning q.*
    ),
    closed_routes_audit as (
      insert into audit_events (id, action, actor, subject, request_id, details, expires_at)
      select uuid_v7(), 'route.quarantined', w.actor, 'route:' || w.route, c.request_id,
             jsonb_build_object('reason', w.reason, 'nativeCode', w.native_code, 'note', w.note, 'jobId', w.job_id,
                                'liftsAt', rfc3339(w.lifts_at)),
             clock_timestamp() + make_interval(secs => ${auditRetentionDays}::float8 * 86400)
      from closed_routes w join closing_routes c on c.route = w.route
    )`;
}
