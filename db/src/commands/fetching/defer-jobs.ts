import { localFailure } from "@keble-scraper/contract";
import type { Fragment, Tx } from "../../database.ts";
import type { EndedJob } from "../../steps/ended-job.ts";
import { finishJobs } from "../../steps/finish-jobs.ts";
import { closedWays, dueWindow, heldUntil, isOpen, type JobKind, openRoute, waiting } from "../../steps/open-jobs.ts";

/** When a job asks again whose routes are quarantined until somebody releases one, unless one is released before. */
const ASK_AGAIN_SECONDS = 3_600;

/**
 * Moves due jobs that can't be taken out of the claims' way, `limit` at the most: those of a held host are due when its
 * hold ends, those without an open route when the first of their routes opens. `deferred_by` says why. Looks at what a
 * claim would look at, caller by caller, and only while something is held or quarantined. A hold is never shortened, so a job
 * whose host is held until its deadline or longer ends at once with DEADLINE_EXCEEDED; a quarantine may be lifted any time.
 * Waits for no lock.
 */
export async function deferJobs(sql: Tx, options: DeferOptions): Promise<Deferred> {
  const trusted = await deferJobsOf(sql, "TRUSTED", options);
  if (trusted.taken >= options.limit) return trusted;
  const suspects = await deferJobsOf(sql, "SUSPECTS", { ...options, limit: options.limit - trusted.taken });
  return { taken: trusted.taken + suspects.taken, ended: [...trusted.ended, ...suspects.ended] };
}

type DeferOptions = { readonly limit: number; readonly jobRetentionMs: number };

/** `taken`: jobs that were moved or ended; as many as the limit means that there may be more. */
export type Deferred = { readonly taken: number; readonly ended: readonly EndedJob[] };

async function deferJobsOf(sql: Tx, kind: JobKind, options: DeferOptions): Promise<Deferred> {
  const { limit } = options;
  const open = waiting(sql, kind);
  const window = dueWindow(sql, { kind, transport: sql`c.transport`, callerId: sql`c.caller_id`, slots: 0 });
  const [row] = await sql<[{ taken: number; ended: EndedJob[] | null }]>`
    with recursive ${closedWays(sql)},
    callers (transport, caller_id) as (
      (select j.transport, j.caller_id from jobs j
       where ${open} and (select routes is not null or has_holds from closed)
       order by j.transport, j.caller_id limit 1)
      union all
      select n.transport, n.caller_id from callers c cross join lateral (
        select j.transport, j.caller_id from jobs j
        where ${open} and (j.transport, j.caller_id) > (c.transport, c.caller_id)
        order by j.transport, j.caller_id limit 1
      ) n
    ),
    taken as materialized (
      select t.* from (
        select b.id from callers c
        cross join lateral (select w.id from ${window} where not ${isOpen(sql, sql`w`)} limit ${limit}) b
        limit ${limit}
      ) blocked
      cross join lateral (
        select j.id, j.host_key, j.deadline_at, ${heldUntil(sql, sql`j`)} as held_until, ${openRoute(sql, sql`j`)} as route,
               ${routesOf(sql, sql`j`)} as routes
        from jobs j
        where j.id = blocked.id and case j.status when 'QUEUED' then j.due_at <= statement_timestamp() else false end
        for update skip locked
      ) t
    ),
    timed as materialized (
      select t.id, coalesce(ceil_ms(t.held_until) >= t.deadline_at, false) as is_over,
             case when t.held_until is not null then 'host:' || t.host_key
                  else 'route:' || array_to_string(t.routes, ',') end as deferred_by,
             case when t.held_until is not null then t.held_until
                  else coalesce((select min(q.lifts_at) from route_quarantines q
                                 where q.route = any (t.routes) and q.lifts_at > statement_timestamp()),
                                statement_timestamp() + make_interval(secs => ${ASK_AGAIN_SECONDS})) end as due_at
      from taken t where t.held_until is not null or t.route is null
    ),
    moved as (
      update jobs j set due_at = ceil_ms(t.due_at), deferred_by = t.deferred_by
      from timed t where j.id = t.id and not t.is_over
    ),
    ended as (
      select t.id, 'FAILED' as status, null::jsonb as result, ${sql.json(localFailure("DEADLINE_EXCEEDED"))}::jsonb as failure,
             null::uuid as artifact_id, 0 as uncounted, 0 as unnumbered, 0 as cost_micros
      from timed t where t.is_over
    ),
    ${finishJobs(sql, options)}
    select (select count(*)::int from timed) as taken,
           (select jsonb_agg(jsonb_build_object('id', id, 'callerId', caller_id, 'status', status, 'eventId', event_id,
              'eventState', event_state)) from finished) as ended`;
  return { taken: row.taken, ended: row.ended ?? [] };
}

/** The routes that job `alias` may still take, sorted as in every value of `deferred_by`. */
function routesOf(sql: Tx, alias: Fragment): Fragment {
  return sql`array(select r from unnest(${alias}.routes[${alias}.route_index + 1:]) r order by r collate "C")`;
}
