import type { Sql, Tx } from "../../database.ts";

/**
 * Ends waiting deliveries of one endpoint that is disabled or deleted, and their events, as dead letters with that
 * reason; no try is spent. Does nothing while the endpoint is open. The caller holds the endpoint's row, so nothing is
 * claimed meanwhile; what is leased ends at its settle. Returns how many were ended: fewer than `limit` means all.
 */
export async function closeDeliveries(tx: Tx, endpointId: string, limit: number): Promise<number> {
  const [row] = await tx<[{ count: number }]>`
    with waiting as materialized (
      select d.id, case when ep.deleted_at is not null then 'ENDPOINT_DELETED' else 'ENDPOINT_DISABLED' end as reason
      from callback_endpoints ep
      join callback_deliveries d on d.endpoint_id = ep.id and d.state = 'PENDING'
      where ep.id = ${endpointId} and (ep.deleted_at is not null or ep.disabled_at is not null)
      order by d.due_at
      limit ${limit}
      for update of d
    ),
    closed as (
      update callback_deliveries d
      set state = 'DEAD_LETTER', dead_letter_reason = w.reason, ended_at = clock_timestamp()
      from waiting w
      where d.id = w.id and d.state = 'PENDING'
      returning d.event_id, d.dead_letter_reason
    ),
    events as (
      update callback_events e
      set state = 'DEAD_LETTER', dead_letter_reason = c.dead_letter_reason, ended_at = clock_timestamp()
      from closed c
      where e.id = c.event_id and e.state = 'PENDING'
    )
    select count(*)::int as count from closed`;
  return row.count;
}

/**
 * How many deliveries a disable or a delete ends in its own transaction (10,000 took 0.7 s on two busy cores); the sweep
 * ends the rest.
 */
export const CLOSED_AT_ONCE_MAX = 5_000;

/**
 * The sweep: ends waiting deliveries of all closed endpoints, at most `limit`. There are such when a job ended just
 * while its endpoint was being closed, when a try of a closed endpoint came back, and when a close had more than it ends
 * at once. Endpoints that somebody else is changing are left for the next time. Returns how many were ended.
 */
export async function closeStrandedDeliveries(sql: Sql, limit: number): Promise<number> {
  return sql.begin(async (tx) => {
    const endpoints = await tx<{ id: string }[]>`
      with recursive waiting (endpoint_id) as (
        (select d.endpoint_id from callback_deliveries d where d.state = 'PENDING' order by d.endpoint_id limit 1)
        union all
        select (select d.endpoint_id from callback_deliveries d
                where d.state = 'PENDING' and d.endpoint_id > w.endpoint_id order by d.endpoint_id limit 1)
        from waiting w where w.endpoint_id is not null
      )
      select ep.id from waiting w join callback_endpoints ep on ep.id = w.endpoint_id
      where ep.deleted_at is not null or ep.disabled_at is not null
      limit ${limit}
      for no key update of ep skip locked`;
    let closed = 0;
    for (const endpoint of endpoints) {
      if (closed >= limit) break;
      closed += await closeDeliveries(tx, endpoint.id, limit - closed);
    }
    return closed;
  });
}
