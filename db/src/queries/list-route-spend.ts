import type { Tx } from "../database.ts";

/** What a route spent in the current day or month (UTC). `reservedMicros` is out with attempts that run. */
export type RouteSpendRow = {
  readonly route: string;
  readonly period: "DAY" | "MONTH";
  readonly settledMicros: number;
  readonly reservedMicros: number;
  readonly overrunMicros: number;
};

/** What each route spent in the current day and month (UTC); a period without a row has had no reservation. */
export async function listRouteSpend(sql: Tx): Promise<RouteSpendRow[]> {
  return sql<RouteSpendRow[]>`
    select b.name as route, b.period, b.settled_micros::float8 as "settledMicros", b.reserved_micros::float8 as "reservedMicros",
           b.overrun_micros::float8 as "overrunMicros"
    from (select (clock_timestamp() at time zone 'UTC')::date as today) t
    cross join lateral (values ('DAY', t.today), ('MONTH', month_of(t.today))) p (period, starts_on)
    cross join lateral (
      select * from budgets b where b.scope = 'ROUTE' and b.period = p.period and b.starts_on = p.starts_on
    ) b
    order by b.name, b.period`;
}
