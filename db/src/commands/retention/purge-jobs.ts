import type { Tx } from "../../database.ts";
import { eraseJobs } from "../../steps/erase-jobs.ts";
import { findClosedEvents } from "./find-closed-events.ts";
import { type PurgeTake, type PurgeTaken, sinceText } from "./purge-take.ts";

/**
 * Deletes jobs that have expired, each with all its attempts and with its event, if that one ended well and has no open
 * delivery: else the job stays. Waits for nobody's lock: what is locked stays for a later batch.
 */
export async function purgeJobs(tx: Tx, take: PurgeTake): Promise<PurgeTaken> {
  const expired = await tx<{ id: string; expires_at: Date }[]>`
    select j.id, j.expires_at
    from jobs j
    where j.expires_at is not null and j.expires_at <= statement_timestamp()
      and j.expires_at >= ${sinceText(take)}::text::timestamptz
      and (select (select d.id from callback_deliveries d where d.event_id = e.id and d.ended_at is null limit 1)
           from callback_events e where e.job_id = j.id) is null
    order by j.expires_at
    limit ${take.limit}
    for update of j skip locked`;
  const last = expired.at(-1)?.expires_at ?? null;
  if (last === null) return { rows: 0, taken: 0, last };
  const ids = expired.map((row) => row.id);
  const events = await tx<{ id: string }[]>`
    select e.id from callback_events e where e.job_id = any(${ids}::uuid[]) for update skip locked`;
  const closed = await findClosedEvents(
    tx,
    events.map((row) => row.id),
  );
  const free = await tx<{ id: string }[]>`
    select j.id from jobs j
    where j.id = any(${ids}::uuid[]) and j.finished_at is not null
      and (select e.id from callback_events e where e.job_id = j.id and e.id <> all(${closed}::uuid[])) is null`;
  await eraseJobs(
    tx,
    free.map((row) => row.id),
  );
  return { rows: free.length, taken: expired.length, last };
}
