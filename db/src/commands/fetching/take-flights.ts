import type { Sql } from "../../database.ts";
import type { CachePlace } from "../../queries/list-cached-answers.ts";
import type { HeldLease } from "./renew-leases.ts";

/** A claimed job that found nothing to take at its place. */
export type FlightRequest = HeldLease & {
  readonly place: CachePlace;
  /** The newest answer (or mark) that it has seen, under its own caller's id or shared; 0: none. */
  readonly seenAtMs: number;
};

/**
 * TAKEN: fetch, others wait. HELD: another job fetches it, and its lease stands for `leaseMs`. ANSWERED: an answer was written
 * since, look again. STALE: the lease was lost.
 */
export type FlightVerdict =
  | { readonly kind: "TAKEN" | "ANSWERED" | "STALE" }
  | { readonly kind: "HELD"; readonly leaseMs: number };

/**
 * Gives each place to one job, in two statements of one transaction: the first makes or locks the rows, in their order; the
 * second, whose snapshot sees whatever was committed by then, looks for a newer answer and for whether the job that has the
 * flight still holds its lease. One place may be asked for by several jobs. Locks nothing but flights.
 */
export async function takeFlights(
  sql: Sql,
  requests: readonly FlightRequest[],
): Promise<ReadonlyMap<string, FlightVerdict>> {
  if (requests.length === 0) return new Map();
  const input = sql.json(requests.map(toInput));
  const rows = await sql.begin(async (tx) => {
    await tx`
      insert into cache_flights as f (key, caller_id, job_id, lease_token, held_until)
      select distinct on (r.key, r.caller_id) decode(r.key, 'hex'), r.caller_id, j.id, j.lease_token, j.lease_until
      from jsonb_to_recordset(${input}) as r (id uuid, token uuid, key text, caller_id text)
      join jobs j on j.id = r.id and j.lease_token = r.token and j.lease_until > clock_timestamp()
      order by r.key, r.caller_id, j.id
      on conflict (key, caller_id) do update set held_until = f.held_until`;
    return tx<TakenRow[]>`
      with input as materialized (
        select r.id, r.token, decode(r.key, 'hex') as key, r.caller_id, r.seen_at_ms, j.caller_id as owner_id, j.lease_until
        from jsonb_to_recordset(${input}) as r (id uuid, token uuid, key text, caller_id text, seen_at_ms float8)
        join jobs j on j.id = r.id and j.lease_token = r.token and j.lease_until > clock_timestamp()
      ),
      judged as materialized (
        select i.*, f.lease_token as leader_token, l.lease_until as leader_until,
               exists (select 1 from cache_entries e where e.key = i.key and e.caller_id in (i.owner_id, i.caller_id)
                         and e.expires_at > statement_timestamp()
                         and (extract(epoch from e.validated_at) * 1000)::float8 > i.seen_at_ms) as is_answered
        from input i
        join cache_flights f on f.key = i.key and f.caller_id = i.caller_id
        left join jobs l on l.id = f.job_id and l.lease_token = f.lease_token and l.lease_until > clock_timestamp()
      ),
      chosen as materialized (
        select distinct on (g.key, g.caller_id) g.* from judged g
        where not g.is_answered and g.leader_until is null order by g.key, g.caller_id, g.id
      ),
      taken as (
        update cache_flights f set job_id = c.id, lease_token = c.token, held_until = c.lease_until
        from chosen c where f.key = c.key and f.caller_id = c.caller_id
      )
      select g.token,
             case when g.is_answered then 'ANSWERED'
                  when coalesce(c.token, g.leader_token) = g.token then 'TAKEN' else 'HELD' end as kind,
             extract(epoch from coalesce(c.lease_until, g.leader_until) - clock_timestamp())::float8 * 1000 as lease_ms
      from judged g left join chosen c on c.key = g.key and c.caller_id = g.caller_id`;
  });
  const verdicts = new Map(rows.map((row) => [row.token, toVerdict(row)]));
  return new Map(requests.map(({ token }) => [token, verdicts.get(token) ?? { kind: "STALE" }]));
}

function toInput({ id, token, place, seenAtMs }: FlightRequest) {
  return { id, token, key: place.key, caller_id: place.callerId, seen_at_ms: seenAtMs };
}

type TakenRow = { token: string; kind: "TAKEN" | "ANSWERED" | "HELD"; lease_ms: number };

function toVerdict({ kind, lease_ms: leaseMs }: TakenRow): FlightVerdict {
  return kind === "HELD" ? { kind, leaseMs: Math.max(0, leaseMs) } : { kind };
}
