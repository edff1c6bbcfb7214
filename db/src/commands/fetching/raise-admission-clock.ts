import type { Tx } from "../../database.ts";

/** A clock this far behind what a process has seen is one that was lost, not one seen through a slow answer. */
const LOST_MS = 250;

/**
 * Moves the clock of `key` on to `aheadMs` from now, which is how far ahead a process last saw it elsewhere, and by
 * `slackMs` more: others may have booked since. A clock that is ahead of that, or nearly, stays.
 */
export async function raiseAdmissionClock(
  sql: Tx,
  clock: { readonly key: string; readonly aheadMs: number; readonly slackMs: number },
): Promise<void> {
  const { key, aheadMs, slackMs } = clock;
  const seen = sql`extract(epoch from clock_timestamp())::float8 * 1000 + ${aheadMs}::float8`;
  await sql`
    insert into admission_clocks as c (key, next_at_ms) values (${key}, ${seen} + ${slackMs}::float8)
    on conflict (key) do update
    set next_at_ms = ${seen} + ${slackMs}::float8 where c.next_at_ms + ${LOST_MS} < ${seen}`;
}
