import type { Tx } from "../database.ts";

/**
 * The one way jobs leave: in the transaction `tx`, deletes ended jobs whose rows it has locked, with their events
 * (deliveries and tries go by cascade) and their attempts (a trigger lets them go by this cascade alone). Whoever calls has
 * made sure, under the events' locks, that none of them is or may become open.
 *
 * The artifacts they held are to be looked at now. Only those whose rows are free: a settle locks artifacts in an order of
 * its own, and waiting for it here could be a deadlock. A row that is taken keeps its time: it is looked at when the hold
 * it had is over. What is left of a deleted one keeps its own clock: it answers GONE until the audit's is over.
 */
export async function eraseJobs(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  // Before the jobs go: they say which artifacts. What reviews artifacts sees both changes or neither. The time is cut, since
  // the column rounds: what is due now must not be due in half a millisecond.
  await tx`
    update artifacts set review_at = least(review_at, date_trunc('milliseconds', clock_timestamp()))
    where id in (
      select a.id from artifacts a
      where a.state = 'AVAILABLE' and a.id in (
        select j.artifact_id from jobs j where j.id = any(${ids}::uuid[]) and j.artifact_id is not null
        union
        select t.evidence_artifact_id from attempts t
        where t.job_id = any(${ids}::uuid[]) and t.evidence_artifact_id is not null
      )
      for no key update skip locked
    )`;
  await tx`delete from callback_events where job_id = any(${ids}::uuid[])`;
  await tx`delete from jobs where id = any(${ids}::uuid[])`;
}
