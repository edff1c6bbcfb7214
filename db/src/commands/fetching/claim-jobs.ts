import { type Capture, FRESHNESS_SECONDS, type Freshness, type Route } from "@keble-scraper/contract";
import type { Fragment, Sql, Tx } from "../../database.ts";
import { closedWays, dueWindow, isOpen, type JobKind, openRoute, waiting } from "../../steps/open-jobs.ts";
import type { Booking, JobLease } from "./job-lease.ts";

type Claim = {
  readonly transport: "HTTP" | "RENDER";
  /** 1 to 1000. */
  readonly slots: number;
  readonly leaseSeconds: number;
  /** The ring of callers is walked from behind this one; "" from its beginning. */
  readonly afterCaller: string;
  /** A process runs at most one of the SUSPECTS. */
  readonly of: JobKind;
  /** At most this many jobs of one caller run at once, over all workers; null for no bound. */
  readonly callerRunningMax: number | null;
};

/** `lastCaller` is where the next claim of this process goes on; null: there was nothing to claim. */
export type JobBatch = { readonly leases: readonly JobLease[]; readonly lastCaller: string | null };

/**
 * Takes due jobs, up to `slots`, one after the other from each caller that has due jobs (of one caller by due time, then
 * deadline), going round the ring of callers. A caller's 50,000 waiting jobs cost another caller nothing: the ring walks
 * callers by one index probe each. Steps over jobs whose host is held and jobs whose remaining routes are all
 * quarantined, over so many at most that they delay nobody; the others go by the first route that is open. Counts the
 * attempt and writes number, token, route and time on the job. Waits for no lock but, with a running bound, for another
 * claim of the same callers.
 */
export async function claimJobs(sql: Sql, claim: Claim): Promise<JobBatch> {
  if (claim.callerRunningMax === null) return claimOf(sql, claim, chosenOnRing(sql, claim), null);
  const max = claim.callerRunningMax;
  return sql.begin(async (tx) => {
    const chosen = await tx<
      { caller_id: string }[]
    >`with recursive ${closedWays(tx)}, ${chosenOnRing(tx, claim)} select caller_id from chosen`;
    const callers = chosen.map((row) => row.caller_id);
    // One claim at a time per caller, taken (in one order) before the statement whose snapshot counts what runs.
    await tx`
      select pg_advisory_xact_lock(hashtextextended('claim:' || caller_id, 0))
      from (select unnest(${callers.toSorted()}::text[]) as caller_id offset 0) one`;
    const given = tx`chosen as materialized (select unnest(${callers}::text[]) as caller_id)`;
    return claimOf(tx, claim, given, max);
  });
}

/** `chosen`: the callers with a job to take and, with a bound, with room for one, at most one per slot, in the ring's order. */
function chosenOnRing(sql: Tx, claim: Claim): Fragment {
  const open = sql`j.transport = ${claim.transport} and ${waiting(sql, claim.of)}`;
  const hasRoom =
    claim.callerRunningMax === null
      ? sql`true`
      : sql`${runningOf(sql, sql`ring.caller_id`)} < ${claim.callerRunningMax}`;
  return sql`
    ahead (caller_id) as (
      (select j.caller_id from jobs j where ${open} and j.caller_id > ${claim.afterCaller} order by j.caller_id limit 1)
      union all
      select (select j.caller_id from jobs j where ${open} and j.caller_id > c.caller_id order by j.caller_id limit 1)
      from ahead c where c.caller_id is not null
    ),
    behind (caller_id) as (
      (select j.caller_id from jobs j where ${open} and j.caller_id <= ${claim.afterCaller} order by j.caller_id limit 1)
      union all
      select (select j.caller_id from jobs j where ${open} and j.caller_id > c.caller_id and j.caller_id <= ${claim.afterCaller}
              order by j.caller_id limit 1)
      from behind c where c.caller_id is not null
    ),
    chosen as materialized (
      select ring.caller_id
      from (select caller_id from ahead union all select caller_id from behind) ring
      where ring.caller_id is not null
        -- A scalar subquery: "exists" was seen to become a semi-join that reads every waiting job and loses the order.
        and (select true from ${windowOf(sql, claim, sql`ring.caller_id`)} where ${isOpen(sql, sql`w`)} limit 1)
        and ${hasRoom}
      limit ${claim.slots}
    )`;
}

function windowOf(sql: Tx, claim: Claim, callerId: Fragment): Fragment {
  return dueWindow(sql, { kind: claim.of, transport: sql`${claim.transport}`, callerId, slots: claim.slots });
}

function runningOf(sql: Tx, callerId: Fragment): Fragment {
  return sql`(select count(*) from jobs r where r.caller_id = ${callerId} and r.lease_token is not null)`;
}

async function claimOf(sql: Tx, claim: Claim, chosen: Fragment, callerMax: number | null): Promise<JobBatch> {
  const room =
    callerMax === null
      ? sql`(select n from share)`
      : sql`least((select n from share), greatest(${callerMax} - ${runningOf(sql, sql`c.caller_id`)}, 0))`;
  const rows = await sql<ClaimedRow[]>`
    with recursive ${closedWays(sql)},
    ${chosen},
    ring as materialized (select caller_id, row_number() over () as place from chosen),
    share as materialized (select ceil(${claim.slots}::numeric / greatest(count(*), 1))::int as n from ring),
    picked as materialized (
      select p.id, p.route, p.turn, c.place from ring c
      cross join lateral (
        select due.id, due.route, row_number() over () as turn from (
          select taken.id, taken.route from ${windowOf(sql, claim, sql`c.caller_id`)}
          cross join lateral (
            -- The state stands in a case: written plainly, it lets the planner choose a partial index over the id.
            select j.id, ${openRoute(sql, sql`j`)} as route from jobs j
            where j.id = w.id and case j.status when 'QUEUED' then j.due_at <= statement_timestamp() else false end
            for update skip locked
          ) taken
          where ${isOpen(sql, sql`w`)}
          limit ${room}
        ) due
      ) p
      order by p.turn, c.place
      limit ${claim.slots}
    )
    update jobs j
    set status = 'RUNNING', attempts_used = j.attempts_used + 1, attempt_number = j.attempt_number + 1,
        lease_token = gen_random_uuid(), lease_until = clock_timestamp() + make_interval(secs => ${claim.leaseSeconds}),
        attempt_route = picked.route, attempt_started_at = clock_timestamp(), deferred_by = null
    from picked
    where j.id = picked.id and j.status = 'QUEUED' and picked.route is not null and j.attempts_used < j.attempt_budget
    returning j.id, j.lease_token, j.caller_id, j.attempt_number, j.attempts_used, j.attempt_budget, j.attempt_route,
      cardinality(j.routes) - array_position(j.routes, j.attempt_route) as routes_left,
      j.attempt_route <> j.routes[j.route_index + 1] as is_diverted, j.suspected_at is not null as is_suspect,
      j.target, j.host_key, j.accept, j.content_types, j.robots, j.capture, j.egress, j.booking, j.freshness,
      encode(j.cache_key, 'hex') as cache_key,
      j.max_body_bytes::float8 as max_body_bytes, j.cost_cap_micros::float8 as cost_cap_micros, j.cost_micros::float8 as cost_micros,
      extract(epoch from j.deadline_at - clock_timestamp())::float8 * 1000 as until_deadline_ms,
      greatest(extract(epoch from clock_timestamp() - j.due_at)::float8 * 1000, 0) as queue_ms,
      picked.turn::int as turn, picked.place::int as place`;
  const inTurn = rows.toSorted((one, other) => one.turn - other.turn || one.place - other.place);
  return {
    leases: inTurn.map((row) => toLease(row, claim.leaseSeconds)),
    lastCaller: inTurn.at(-1)?.caller_id ?? null,
  };
}

type ClaimedRow = {
  id: string;
  lease_token: string;
  caller_id: string;
  attempt_number: number;
  attempts_used: number;
  attempt_budget: number;
  attempt_route: Route;
  routes_left: number;
  is_diverted: boolean;
  is_suspect: boolean;
  target: JobLease["target"];
  host_key: string;
  accept: JobLease["accept"];
  content_types: string[] | null;
  robots: JobLease["robots"];
  capture: Capture | null;
  egress: JobLease["egress"];
  booking: Booking | null;
  freshness: Freshness;
  cache_key: string | null;
  max_body_bytes: number;
  cost_cap_micros: number;
  cost_micros: number;
  until_deadline_ms: number;
  queue_ms: number;
  /** Which of its caller's jobs of this claim it is, and where on the ring its caller is; both from 1. */
  turn: number;
  place: number;
};

function toLease(row: ClaimedRow, leaseSeconds: number): JobLease {
  return {
    id: row.id,
    token: row.lease_token,
    callerId: row.caller_id,
    attemptNumber: row.attempt_number,
    attemptsUsed: row.attempts_used,
    attemptBudget: row.attempt_budget,
    route: row.attempt_route,
    isLastRoute: row.routes_left === 0,
    routesLeft: row.routes_left,
    isDiverted: row.is_diverted,
    isSuspect: row.is_suspect,
    target: row.target,
    hostKey: row.host_key,
    accept: row.accept,
    contentTypes: row.content_types,
    robots: row.robots,
    capture: row.capture,
    egress: row.egress,
    maxBodyBytes: row.max_body_bytes,
    cacheKey: row.cache_key,
    freshnessMs: FRESHNESS_SECONDS[row.freshness] * 1_000,
    costCapMicros: row.cost_cap_micros,
    costMicros: row.cost_micros,
    booking: row.booking,
    leaseMs: leaseSeconds * 1000,
    untilDeadlineMs: row.until_deadline_ms,
    queueMs: row.queue_ms,
  };
}
