import { localFailure } from "@keble-scraper/contract";
import type { Tx } from "../../database.ts";

/** How many leases had expired, and how many of these deliveries are due again. */
export type RecoveredDeliveries = { readonly recovered: number; readonly requeued: number };

/**
 * Ends tries whose lease expired: their outcome is UNKNOWN, with WORKER_LOST, because the receiver may have had them. The
 * delivery is due again at once while its own budget allows and its endpoint is open; else it is a dead letter. A full
 * batch means that there may be more.
 */
export async function recoverDeliveries(sql: Tx, limit: number): Promise<RecoveredDeliveries> {
  const [row] = await sql<[RecoveredDeliveries]>`
    with expired as materialized (
      select d.id, d.lease_token, d.attempts_used, d.try_started_at,
             case when ep.deleted_at is not null then 'ENDPOINT_DELETED'
                  when ep.disabled_at is not null then 'ENDPOINT_DISABLED'
                  when d.attempts_used >= d.attempt_budget then 'BUDGET_SPENT' end as reason
      from callback_deliveries d join callback_endpoints ep on ep.id = d.endpoint_id
      where d.lease_token is not null and d.lease_until <= statement_timestamp()
      order by d.lease_until
      limit ${limit}
      for update of d skip locked
    ),
    lost as (
      insert into callback_tries (id, delivery_id, outcome, ordinal, lease_token, failure, started_at, ended_at)
      select uuid_v7(), x.id, 'UNKNOWN', x.attempts_used, x.lease_token, ${sql.json(localFailure("WORKER_LOST"))}::jsonb,
             x.try_started_at, clock_timestamp()
      from expired x
    ),
    ended as (
      update callback_deliveries d
      set state = case when x.reason is null then 'PENDING' else 'DEAD_LETTER' end, lease_token = null, lease_until = null,
          dead_letter_reason = x.reason,
          due_at = case when x.reason is null then ceil_ms(clock_timestamp()) else d.due_at end,
          ended_at = case when x.reason is not null then clock_timestamp() end
      from expired x
      where d.id = x.id
      returning d.event_id, d.state, d.dead_letter_reason
    ),
    event as (
      update callback_events e
      set state = d.state, dead_letter_reason = d.dead_letter_reason,
          ended_at = case when d.state <> 'PENDING' then clock_timestamp() end
      from ended d
      where e.id = d.event_id and e.state = 'LEASED'
    )
    select count(*)::int as recovered, (count(*) filter (where state = 'PENDING'))::int as requeued from ended`;
  return row;
}
