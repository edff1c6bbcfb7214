import type { Tx } from "../../database.ts";

/**
 * Which of these events, whose rows `tx` has locked, may go: those that ended well and have no open delivery. Locks their
 * deliveries; an event with one that somebody else has locked is left out.
 *
 * It has to be a statement of its own: once the event is locked no delivery can be added to it, while the statement that
 * locked it may not have seen the one that a replay had just added.
 */
export async function findClosedEvents(tx: Tx, lockedIds: readonly string[]): Promise<string[]> {
  if (lockedIds.length === 0) return [];
  const rows = await tx<{ id: string }[]>`
    with locked as materialized (
      select d.id from callback_deliveries d where d.event_id = any(${[...lockedIds]}::uuid[]) for update skip locked
    )
    select e.id from callback_events e
    where e.id = any(${[...lockedIds]}::uuid[]) and e.state in ('DELIVERED', 'DISCARDED')
      and (select d.id from callback_deliveries d
           where d.event_id = e.id and (d.ended_at is null or d.id not in (select l.id from locked l)) limit 1) is null`;
  return rows.map((row) => row.id);
}
