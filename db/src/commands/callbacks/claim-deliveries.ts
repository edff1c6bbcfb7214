import type { EventType } from "@keble-scraper/contract";
import type { Sql, Tx } from "../../database.ts";
import type { SealedSecret } from "./register-endpoint.ts";

/** A claimed delivery: all that a try needs but the job. */
export type DeliveryLease = {
  readonly id: string;
  readonly token: string;
  readonly eventId: string;
  readonly eventType: EventType;
  readonly jobId: string;
  readonly callerId: string;
  readonly endpointId: string;
  readonly url: string;
  readonly timeoutMs: number;
  /** This try's number: the claim has counted it. */
  readonly attemptsUsed: number;
  readonly attemptBudget: number;
  readonly occurredAt: Date;
  /** The bytes of earlier tries and replays; null before the first. */
  readonly payload: string | null;
  /** All that are live, the newest first. */
  readonly secrets: readonly SealedSecret[];
  /** The database's clock at the claim, in milliseconds since 1970. */
  readonly claimedAtMs: number;
};

type DeliveryClaim = {
  /** 1 to 1000. */
  readonly slots: number;
  readonly leaseSeconds: number;
  /** The ring of endpoints is walked from behind this one; null from its beginning. */
  readonly afterEndpointId: string | null;
};

/** `lastEndpointId` is where the next claim of this process goes on; null: no endpoint had anything to claim. */
export type DeliveryBatch = { readonly leases: readonly DeliveryLease[]; readonly lastEndpointId: string | null };

/** Before every UUID. */
const NIL = "00000000-0000-0000-0000-000000000000";

/**
 * Takes due deliveries, up to `slots`, shared over the endpoints that have some. Never more of one endpoint under way
 * than its `max_concurrency`, over all workers; none of an endpoint that is disabled or deleted. Counts the try, and
 * writes token and lease. Never waits for a lock: an endpoint that another worker claims for is left to it.
 */
export async function claimDeliveries(sql: Sql, claim: DeliveryClaim): Promise<DeliveryBatch> {
  return sql.begin(async (tx) => {
    const endpointIds = await lockDueEndpoints(tx, claim);
    const lastEndpointId = endpointIds.at(-1);
    if (lastEndpointId === undefined) return { leases: [], lastEndpointId: null };
    // The count of what is under way stands in this second statement: its snapshot is younger than the endpoints' locks,
    // so it sees whatever the claim that held them before had taken.
    const rows = await claimOf(tx, claim, endpointIds);
    return { leases: rows.map(toLease), lastEndpointId };
  });
}

async function lockDueEndpoints(tx: Tx, claim: DeliveryClaim): Promise<string[]> {
  const after = claim.afterEndpointId ?? NIL;
  const rows = await tx<{ id: string }[]>`
    with recursive ahead (endpoint_id) as (
      (select d.endpoint_id from callback_deliveries d
       where d.state = 'PENDING' and d.endpoint_id > ${after} order by d.endpoint_id limit 1)
      union all
      select (select d.endpoint_id from callback_deliveries d
              where d.state = 'PENDING' and d.endpoint_id > r.endpoint_id order by d.endpoint_id limit 1)
      from ahead r where r.endpoint_id is not null
    ),
    behind (endpoint_id) as (
      (select d.endpoint_id from callback_deliveries d
       where d.state = 'PENDING' and d.endpoint_id <= ${after} order by d.endpoint_id limit 1)
      union all
      select (select d.endpoint_id from callback_deliveries d
              where d.state = 'PENDING' and d.endpoint_id > r.endpoint_id and d.endpoint_id <= ${after}
              order by d.endpoint_id limit 1)
      from behind r where r.endpoint_id is not null
    ),
    chosen as materialized (
      select open.id
      from (select endpoint_id from ahead union all select endpoint_id from behind) ring
      cross join lateral (
        select ep.id from callback_endpoints ep
        where ep.id = ring.endpoint_id and ep.disabled_at is null and ep.deleted_at is null
          and exists (select 1 from callback_deliveries d where d.endpoint_id = ring.endpoint_id and d.state = 'PENDING'
                        and d.due_at <= statement_timestamp())
          and (select count(*) from callback_deliveries d where d.endpoint_id = ring.endpoint_id and d.lease_token is not null)
              < ep.max_concurrency
        offset 0
      ) open
      limit ${claim.slots}
    )
    select locked.id from chosen
    cross join lateral (
      select ep.id from callback_endpoints ep
      where ep.id = chosen.id and ep.disabled_at is null and ep.deleted_at is null
      for no key update skip locked
    ) locked`;
  return rows.map((row) => row.id);
}

async function claimOf(tx: Tx, claim: DeliveryClaim, endpointIds: readonly string[]): Promise<ClaimedRow[]> {
  return tx<ClaimedRow[]>`
    with open as materialized (
      select ep.id, ep.max_concurrency
             - (select count(*) from callback_deliveries d where d.endpoint_id = ep.id and d.lease_token is not null) as room
      from callback_endpoints ep where ep.id = any(${[...endpointIds]}::uuid[])
    ),
    share as materialized (
      select ceil(${claim.slots}::numeric / greatest(count(*), 1))::int as n from open where room > 0
    ),
    picked as materialized (
      select p.id from open o
      cross join lateral (
        select d.id from callback_deliveries d
        where d.endpoint_id = o.id and d.state = 'PENDING' and d.due_at <= statement_timestamp()
        order by d.due_at
        limit greatest(least((select n from share), o.room), 0)
        for update skip locked
      ) p
      limit ${claim.slots}
    ),
    claimed as (
      update callback_deliveries d
      set state = 'LEASED', attempts_used = d.attempts_used + 1, lease_token = gen_random_uuid(),
          lease_until = clock_timestamp() + make_interval(secs => ${claim.leaseSeconds}), try_started_at = clock_timestamp()
      from picked
      where d.id = picked.id and d.state = 'PENDING' and d.attempts_used < d.attempt_budget
      returning d.id, d.event_id, d.endpoint_id, d.lease_token, d.attempts_used, d.attempt_budget
    ),
    events as (
      update callback_events e set state = 'LEASED' from claimed c where e.id = c.event_id and e.state = 'PENDING'
    )
    select c.id, c.lease_token, c.event_id, e.type, e.job_id, e.caller_id, c.endpoint_id, ep.url, ep.timeout_ms,
      c.attempts_used, c.attempt_budget, e.occurred_at, e.payload,
      extract(epoch from clock_timestamp())::float8 * 1000 as claimed_at_ms,
      (select jsonb_agg(jsonb_build_object('keyId', s.key_id, 'hex', encode(s.ciphertext, 'hex')) order by s.id desc)
       from callback_secrets s
       where s.endpoint_id = c.endpoint_id and (s.expires_at is null or s.expires_at > clock_timestamp())) as secrets
    from claimed c
    join callback_events e on e.id = c.event_id
    join callback_endpoints ep on ep.id = c.endpoint_id`;
}

type ClaimedRow = {
  id: string;
  lease_token: string;
  event_id: string;
  type: EventType;
  job_id: string;
  caller_id: string;
  endpoint_id: string;
  url: string;
  timeout_ms: number;
  attempts_used: number;
  attempt_budget: number;
  occurred_at: Date;
  payload: string | null;
  claimed_at_ms: number;
  secrets: { keyId: string; hex: string }[] | null;
};

function toLease(row: ClaimedRow): DeliveryLease {
  return {
    id: row.id,
    token: row.lease_token,
    eventId: row.event_id,
    eventType: row.type,
    jobId: row.job_id,
    callerId: row.caller_id,
    endpointId: row.endpoint_id,
    url: row.url,
    timeoutMs: row.timeout_ms,
    attemptsUsed: row.attempts_used,
    attemptBudget: row.attempt_budget,
    occurredAt: row.occurred_at,
    payload: row.payload,
    secrets: (row.secrets ?? []).map(({ keyId, hex }) => ({ keyId, ciphertext: Buffer.from(hex, "hex") })),
    claimedAtMs: row.claimed_at_ms,
  };
}
