import type { Fragment, Tx } from "../database.ts";
import { quarantineRoutes } from "./quarantine-routes.ts";
import { settleReservations } from "./settle-reservations.ts";

/**
 * What a settle writes beside its jobs, as a part of its WITH list: the money of reservations, the holds of hosts that
 * asked for one, and the quarantine of routes that failed for everybody or cost more than was reserved. Reads the
 * settle's `input` and `judged`.
 */
export function settleSideEffects(sql: Tx, options: { readonly auditRetentionDays?: number }): Fragment {
  return sql`
    spent as (
      select g.caller_id, g.attempt_route as route, g.reserved_on, g.reserved_micros, g.cost_micros
      from judged g where g.reserved_micros is not null
    ),
    ${settleReservations(sql)},
    held_hosts as (
      insert into host_holds as h (host_key, held_until)
      select i.hold_key, max(ceil_ms(g.now + make_interval(secs => i.hold_ms / 1000)))
      from judged g join input i on i.id = g.id
      where i.hold_key is not null
      group by 1 order by 1
      on conflict (host_key) do update set held_until = greatest(h.held_until, excluded.held_until)
    ),
    closing_routes as materialized (
      select distinct on (r.route) r.route, r.job_id, r.reason, r.native_code, 'system:settle' as actor, null as note,
             null as request_id, r.quarantined_at, r.lifts_at
      from (
        select g.attempt_route as route, g.id as job_id, i.quarantine_reason as reason, i.native_code, g.now as quarantined_at,
               g.now + make_interval(secs => i.quarantine_ms / 1000) as lifts_at
        from judged g join input i on i.id = g.id where i.quarantine_reason is not null
        union all
        select g.attempt_route, g.id, 'COST_OVERRUN', null, g.now, null from judged g where g.cost_micros > g.reserved_micros
      ) r
      order by r.route, r.lifts_at desc nulls first
    ),
    ${quarantineRoutes(sql, options.auditRetentionDays)}`;
}
