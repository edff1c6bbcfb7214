import type { Fragment, Tx } from "../database.ts";

/** Which waiting jobs: SUSPECTS are those whose last attempt was lost with its worker. */
export type JobKind = "TRUSTED" | "SUSPECTS";

/**
 * How many due jobs of one caller a claim looks at, beyond its slots, while it steps over those whose host is held or whose
 * routes are quarantined: 50,000 of them may cost no other caller more than this. `deferJobs` moves them out of the way.
 */
const STEPS_MAX = 1_000;

/** The CTE `closed`, one row, which the pieces below read: quarantined routes (null: none), and whether any host is held. */
export function closedWays(sql: Tx): Fragment {
  return sql`
    closed as materialized (
      select (select array_agg(q.route) from route_quarantines q
              where q.lifts_at is null or q.lifts_at > statement_timestamp()) as routes,
             (select true from host_holds h where h.held_until > statement_timestamp() limit 1) as has_holds
    )`;
}

/** Jobs `j` that wait, by the predicates of their partial indexes. */
export function waiting(sql: Tx, of: JobKind): Fragment {
  return of === "TRUSTED"
    ? sql`j.status = 'QUEUED' and j.suspected_at is null`
    : sql`j.status = 'QUEUED' and j.suspected_at is not null`;
}

/** The first due jobs of a caller in their order, as `w`, without a lock. */
export function dueWindow(
  sql: Tx,
  of: { readonly kind: JobKind; readonly transport: Fragment; readonly callerId: Fragment; readonly slots: number },
): Fragment {
  return sql`
    (select j.id, j.host_key, j.routes, j.route_index from jobs j
     where j.transport = ${of.transport} and ${waiting(sql, of.kind)} and j.caller_id = ${of.callerId}
       and j.due_at <= statement_timestamp() and j.deadline_at > statement_timestamp()
     order by j.due_at, j.deadline_at
     limit ${STEPS_MAX + of.slots}) w`;
}

/** The first route of job `alias` at or after its index that is not quarantined; null: none. */
export function openRoute(sql: Tx, alias: Fragment): Fragment {
  return sql`
    case when (select routes from closed) is null then ${alias}.routes[${alias}.route_index + 1]
         else (select r.route from unnest(${alias}.routes) with ordinality as r (route, place)
               where r.place > ${alias}.route_index and r.route <> all ((select routes from closed)::text[])
               order by r.place limit 1) end`;
}

/** When the hold on the host of job `alias` ends; null: it is not held. */
export function heldUntil(sql: Tx, alias: Fragment): Fragment {
  return sql`
    case when (select has_holds from closed)
         then (select h.held_until from host_holds h
               where h.host_key = ${alias}.host_key and h.held_until > statement_timestamp()) end`;
}

/** True when job `alias` can go: its host is not held, and one of its routes is open. */
export function isOpen(sql: Tx, alias: Fragment): Fragment {
  return sql`(${heldUntil(sql, alias)} is null and ${openRoute(sql, alias)} is not null)`;
}
