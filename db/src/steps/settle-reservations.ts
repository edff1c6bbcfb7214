import type { Fragment, Tx } from "../database.ts";

/**
 * Takes money out of reservation, as a part of a statement's WITH list. It reads a CTE `spent` with the columns
 * `caller_id, route, reserved_on, reserved_micros, cost_micros` (the reservations that end, of jobs that the statement has
 * locked) and moves them in the budgets of the reservation's own day and month, whenever it is now: what it cost, up to
 * the reservation, is settled; the rest is overrun, which caps do not count. The statement itself clears the
 * reservation on the job, in the update that ends or requeues it; the table refuses a lease that ends without it.
 *
 * An upsert, because it alone sees a row that was made after the statement's snapshot. Rows are locked in the order of
 * their key, by every writer, always after the jobs.
 */
export function settleReservations(sql: Tx): Fragment {
  return sql`
    settled_budgets as (
      insert into budgets as b (scope, name, period, starts_on, settled_micros, reserved_micros, overrun_micros)
      select k.scope, k.name, k.period, k.starts_on, sum(least(s.cost_micros, s.reserved_micros)), sum(s.reserved_micros),
             sum(greatest(s.cost_micros - s.reserved_micros, 0))
      from spent s
      cross join lateral (values
        ('CALLER', s.caller_id, 'DAY', s.reserved_on), ('CALLER', s.caller_id, 'MONTH', month_of(s.reserved_on)),
        ('ROUTE', s.route, 'DAY', s.reserved_on), ('ROUTE', s.route, 'MONTH', month_of(s.reserved_on))
      ) k (scope, name, period, starts_on)
      group by 1, 2, 3, 4
      order by 1, 2, 3, 4
      on conflict (scope, name, period, starts_on) do update
      set settled_micros = b.settled_micros + excluded.settled_micros,
          reserved_micros = b.reserved_micros - excluded.reserved_micros,
          overrun_micros = b.overrun_micros + excluded.overrun_micros
    )`;
}
