import type { Sql, Tx } from "../../database.ts";

/** The most that may be spent in the current day or month (UTC), in micro-USD; null: no cap. */
export type CostCaps = {
  readonly routeDay: number | null;
  readonly routeMonth: number | null;
  readonly callerDay: number | null;
  readonly callerMonth: number | null;
};

/** What an attempt wants to be able to spend, at the most. */
export type CostRequest = {
  readonly id: string;
  readonly token: string;
  /** The route of the attempt. */
  readonly route: string;
  readonly micros: number;
  readonly caps: CostCaps;
};

/**
 * RESERVED: it may be spent. CAP_EXCEEDED: settled spend leaves no room under a cap, the job's own or another.
 * CAPACITY: what is out with running attempts leaves none, for now. STALE: the lease was lost. Only RESERVED wrote
 * anything.
 */
export type CostVerdict = "RESERVED" | "CAP_EXCEEDED" | "CAPACITY" | "STALE";

/**
 * Reserves money before a paid dispatch, under the job's fence, in the day and month (UTC) of this moment, for the route
 * and for the caller: settled + reserved never passes a cap, under any concurrency, because every budget is judged
 * under its row's lock, with the reservation in it, and all is undone unless all allow it. Asked again under one token,
 * the reservation that is there answers. Locks the job, then budgets in the order of their key; nothing where a cap is full
 * already.
 */
export async function reserveCost(sql: Sql, request: CostRequest): Promise<CostVerdict> {
  const refusal = await foresee(sql, request);
  if (refusal !== null) return refusal;
  try {
    return await sql.begin(async (tx) => {
      const verdict = await reserve(tx, request);
      // What was written so far was written to be judged.
      if (verdict !== "RESERVED") throw new Refused(verdict);
      return verdict;
    });
  } catch (error) {
    if (error instanceof Refused) return error.verdict;
    throw error;
  }
}

/**
 * What the budgets say without their locks; null: nothing speaks against it. Jobs that wait for money ask again and again:
 * they may not stand in the way of the settles that free it. Settled spend only grows within its period, so what it has
 * filled stays filled; what is reserved may be free in a moment, and is asked for again then.
 */
async function foresee(sql: Tx, { id, token, route, micros, caps }: CostRequest): Promise<CostVerdict | null> {
  if (Object.values(caps).every((cap) => cap === null)) return null;
  const rows = await sql<BudgetState[]>`
    select b.scope, b.period, b.settled_micros::float8 as settled, (b.reserved_micros + ${micros}::bigint)::float8 as reserved
    from jobs j
    cross join lateral (select (clock_timestamp() at time zone 'UTC')::date as today offset 0) t
    cross join lateral (values
      ('CALLER', j.caller_id, 'DAY', t.today), ('CALLER', j.caller_id, 'MONTH', month_of(t.today)),
      ('ROUTE', ${route}::text, 'DAY', t.today), ('ROUTE', ${route}::text, 'MONTH', month_of(t.today))
    ) k (scope, name, period, starts_on)
    join budgets b using (scope, name, period, starts_on)
    where j.id = ${id} and j.lease_token = ${token} and j.attempt_route = ${route} and j.lease_until > clock_timestamp()
      and j.reserved_micros is null and j.cost_micros + ${micros}::bigint <= j.cost_cap_micros`;
  return refusalOf(rows, micros, caps);
}

class Refused extends Error {
  readonly verdict: CostVerdict;
  constructor(verdict: CostVerdict) {
    super(verdict);
    this.verdict = verdict;
  }
}

type BudgetState = {
  readonly scope: "ROUTE" | "CALLER";
  readonly period: "DAY" | "MONTH";
  readonly settled: number;
  /** With this reservation. */
  readonly reserved: number;
};

type ReservedRow = { readonly job: "STALE" | "RESERVED" | "CAP_EXCEEDED" | "ASKING" } & BudgetState;

async function reserve(tx: Tx, { id, token, route, micros, caps }: CostRequest): Promise<CostVerdict> {
  const rows = await tx<ReservedRow[]>`
    with held as materialized (
      select j.id, j.caller_id, j.lease_until, j.reserved_micros, j.cost_micros + ${micros} > j.cost_cap_micros as is_over
      from jobs j
      where j.id = ${id} and j.lease_token = ${token} and j.attempt_route = ${route} and j.lease_until > clock_timestamp()
      for update
    ),
    -- The lock may have been waited for.
    judged as materialized (
      select h.*, (clock_timestamp() at time zone 'UTC')::date as today,
             case when h.lease_until <= clock_timestamp() then 'STALE' when h.reserved_micros is not null then 'RESERVED'
                  when h.is_over then 'CAP_EXCEEDED' else 'ASKING' end as job
      from held h
    ),
    counted as (
      insert into budgets as b (scope, name, period, starts_on, reserved_micros)
      select k.scope, k.name, k.period, k.starts_on, ${micros}::bigint
      from judged g
      cross join lateral (values
        ('CALLER', g.caller_id, 'DAY', g.today), ('CALLER', g.caller_id, 'MONTH', month_of(g.today)),
        ('ROUTE', ${route}::text, 'DAY', g.today), ('ROUTE', ${route}::text, 'MONTH', month_of(g.today))
      ) k (scope, name, period, starts_on)
      where g.job = 'ASKING'
      order by 1, 2, 3, 4
      on conflict (scope, name, period, starts_on) do update set reserved_micros = b.reserved_micros + excluded.reserved_micros
      returning scope, period, settled_micros, reserved_micros
    ),
    reserved as (
      update jobs j set reserved_micros = ${micros}, reserved_on = g.today
      from judged g where j.id = g.id and g.job = 'ASKING'
    )
    select g.job, c.scope, c.period, c.settled_micros::float8 as settled, c.reserved_micros::float8 as reserved
    from judged g left join counted c on true`;
  const job = rows[0]?.job ?? "STALE";
  if (job !== "ASKING") return job;
  return refusalOf(rows, micros, caps) ?? "RESERVED";
}

function refusalOf(rows: readonly BudgetState[], micros: number, caps: CostCaps): "CAP_EXCEEDED" | "CAPACITY" | null {
  const capped = rows.map((row) => ({ ...row, cap: capOf(caps, row) ?? Number.POSITIVE_INFINITY }));
  if (capped.some((row) => row.settled + micros > row.cap)) return "CAP_EXCEEDED";
  if (capped.some((row) => row.settled + row.reserved > row.cap)) return "CAPACITY";
  return null;
}

function capOf(caps: CostCaps, { scope, period }: BudgetState): number | null {
  if (scope === "ROUTE") return period === "DAY" ? caps.routeDay : caps.routeMonth;
  return period === "DAY" ? caps.callerDay : caps.callerMonth;
}
