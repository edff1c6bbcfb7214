import type { Tx } from "../../database.ts";
import { toStorableText } from "../../to-storable-text.ts";
import type { HeldDelivery } from "./renew-deliveries.ts";

/**
 * Stores the bytes of events before their first try and returns, by token, what is stored from now on: the bytes that
 * are signed and sent, on this try and all others. An event that has bytes keeps them. A lease that was lost is absent
 * from the answer and changed nothing.
 */
export async function storePayloads(
  sql: Tx,
  payloads: readonly (HeldDelivery & { readonly payload: string })[],
): Promise<ReadonlyMap<string, string>> {
  if (payloads.length === 0) return new Map();
  const rows = await sql<{ lease_token: string; payload: string }[]>`
    with input as (
      select * from unnest(${payloads.map((item) => item.id)}::uuid[], ${payloads.map((item) => item.token)}::uuid[],
        ${payloads.map((item) => toStorableText(item.payload))}::text[]) as i (id, token, payload)
    ),
    held as materialized (
      select d.id, d.event_id, d.lease_token, i.payload
      from callback_deliveries d join input i on i.id = d.id
      where d.lease_token = i.token and d.lease_until > clock_timestamp()
      order by d.id
      for update of d
    ),
    stored as (
      update callback_events e set payload = h.payload
      from held h
      where e.id = h.event_id and e.payload is null
      returning e.id, e.payload
    )
    select h.lease_token, coalesce(s.payload, e.payload) as payload
    from held h
    join callback_events e on e.id = h.event_id
    left join stored s on s.id = h.event_id`;
  return new Map(rows.map((row) => [row.lease_token, row.payload]));
}
