import type { Tx } from "../../database.ts";

/** The least time between two requests of `key`. */
export type Pace = { readonly key: string; readonly intervalMs: number };

/**
 * The last step of admission while Redis is away: lets a request go (null) and moves every clock on, or none of them: then
 * it says which one it is too early for, and in how many milliseconds it no longer is. A request may be `earlyMs` early,
 * which its clock does not forget. One statement under the rows' locks, taken in the order of their keys; only where two
 * callers make a row at once, one of them may move another of its clocks on without going.
 */
export async function takePaces(
  sql: Tx,
  paces: readonly Pace[],
  earlyMs: number,
): Promise<{ readonly key: string; readonly inMs: number } | null> {
  if (paces.length === 0) return null;
  const keys = paces.map(({ key }) => key);
  const intervals = paces.map(({ intervalMs }) => intervalMs);
  const [refusal] = await sql<{ key: string; in_ms: number }[]>`
    with wanted as (
      select * from unnest(${keys}::text[], ${intervals}::float8[]) as w (key, interval_ms)
    ),
    locked as materialized (
      select c.key, c.next_at_ms from admission_clocks c where c.key = any(${keys}::text[]) order by c.key for update
    ),
    -- Read behind the locks, which may have been waited for.
    moment as materialized (
      select extract(epoch from clock_timestamp())::float8 * 1000 as now_ms from (select count(*) from locked) behind
    ),
    refused as (
      select l.key, l.next_at_ms - m.now_ms - ${earlyMs}::float8 as in_ms
      from locked l cross join moment m where l.next_at_ms - m.now_ms > ${earlyMs}::float8
    ),
    taken as (
      insert into admission_clocks as c (key, next_at_ms)
      select w.key, greatest(m.now_ms, l.next_at_ms) + w.interval_ms
      from wanted w cross join moment m left join locked l on l.key = w.key
      where not exists (select 1 from refused) order by w.key
      -- Not a row that somebody else has made meanwhile: that one has to be asked again.
      on conflict (key) do update set next_at_ms = excluded.next_at_ms
      where exists (select 1 from locked l where l.key = c.key)
      returning c.key
    ),
    missed as (
      select w.key, 1::float8 as in_ms from wanted w
      where not exists (select 1 from refused) and not exists (select 1 from taken t where t.key = w.key)
    )
    select key, in_ms from (select * from refused union all select * from missed) r order by in_ms desc limit 1`;
  return refusal === undefined ? null : { key: refusal.key, inMs: refusal.in_ms };
}
