import type { Tx } from "../../database.ts";
import { findClosedEvents } from "./find-closed-events.ts";
import { type PurgeTake, type PurgeTaken, sinceText } from "./purge-take.ts";

/**
 * Deletes callback events that ended well and have expired, with their deliveries and tries, and writes on their jobs how
 * they ended. An event with an open delivery stays. Waits for nobody's lock: what is locked stays for a later batch.
 *
 * No EXISTS here and in what follows: with statistics from when nothing was open, the planner reads all that is open now
 * for each batch.
 */
export async function purgeEvents(tx: Tx, take: PurgeTake): Promise<PurgeTaken> {
  const expired = await tx<{ id: string; expires_at: Date }[]>`
    select e.id, e.expires_at
    from callback_events e
    where e.expires_at is not null and e.expires_at <= statement_timestamp()
      and e.expires_at >= ${sinceText(take)}::text::timestamptz
      and (select d.id from callback_deliveries d where d.event_id = e.id and d.ended_at is null limit 1) is null
    order by e.expires_at
    limit ${take.limit}
    for update of e skip locked`;
  const last = expired.at(-1)?.expires_at ?? null;
  if (last === null) return { rows: 0, taken: 0, last };
  const closed = await findClosedEvents(
    tx,
    expired.map((row) => row.id),
  );
  const free = await tx<{ id: string }[]>`
    select e.id from callback_events e join jobs j on j.id = e.job_id
    where e.id = any(${closed}::uuid[])
    for no key update of j skip locked`;
  const gone = await tx`
    with gone as (
      delete from callback_events where id = any(${free.map((row) => row.id)}::uuid[])
      returning job_id, state
    )
    update jobs j set callback_outcome = g.state from gone g where j.id = g.job_id`;
  return { rows: gone.count, taken: expired.length, last };
}
