import type { Tx } from "../../database.ts";

/** A step's answer, in epoch milliseconds of the database's clock. */
export type AdmissionStep = {
  readonly nowMs: number;
  /** When the request may be sent; at or before `nowMs`: now. */
  readonly atMs: number;
  /** False: `atMs` is further away than the caller would wait, and no clock was moved. */
  readonly isBooked: boolean;
};

/**
 * The step of admission while Redis is away: books the next free time of `key` and moves its clock on by `intervalMs`, in
 * one statement under the row's lock. A time further ahead than `waitMs` is not booked: a refused call that booked
 * would move the horizon away for ever. A time that was booked before is answered again, and books nothing,
 * within `waitMs` of it.
 */
export async function takeAdmission(
  sql: Tx,
  step: {
    readonly key: string;
    readonly intervalMs: number;
    readonly waitMs: number;
    readonly bookedAtMs: number | null;
  },
): Promise<AdmissionStep> {
  const { key, intervalMs, waitMs, bookedAtMs } = step;
  const [row] = await sql<[{ now_ms: number; at_ms: number | null; keeps: boolean }]>`
    with moment as materialized (
      select now_ms, coalesce(abs(now_ms - ${bookedAtMs}::float8) <= ${waitMs}::float8, false) as keeps
      from (select ${nowMs(sql)} as now_ms) clock
    ),
    taken as (
      insert into admission_clocks as c (key, next_at_ms)
      select ${key}, now_ms + ${intervalMs}::float8 from moment where not keeps
      -- Its own look at the clock: the row's lock may have been waited for.
      on conflict (key) do update set next_at_ms = greatest(c.next_at_ms, ${nowMs(sql)}) + ${intervalMs}::float8
      where c.next_at_ms - ${nowMs(sql)} <= ${waitMs}::float8
      returning next_at_ms - ${intervalMs}::float8 as at_ms
    )
    select ${nowMs(sql)} as now_ms, m.keeps, case when m.keeps then ${bookedAtMs}::float8 else t.at_ms end as at_ms
    from moment m left join taken t on true`;
  if (row.at_ms !== null) return { nowMs: row.now_ms, atMs: row.at_ms, isBooked: true };
  // Another statement, because the step's snapshot may be older than the row that refused it.
  const [horizon] = await sql<[{ now_ms: number; at_ms: number }]>`
    select now_ms, greatest(now_ms, (select c.next_at_ms from admission_clocks c where c.key = ${key})) as at_ms
    from (select ${nowMs(sql)} as now_ms) clock`;
  return { nowMs: horizon.now_ms, atMs: horizon.at_ms, isBooked: false };
}

function nowMs(sql: Tx) {
  return sql`extract(epoch from clock_timestamp())::float8 * 1000`;
}
