import type { Tx } from "../../database.ts";

/** A job that was released to wait for another's fetch, and the number its last attempt had before that one was given back. */
export type WaitingJob = { readonly id: string; readonly attemptNumber: number };

/** The farthest that such a job's due time is ahead: what is due later waits for something else. */
export const FLIGHT_WAIT_SECONDS_MAX = 30;

/** Due times are rounded up, and the database's clock reads them later. */
const AHEAD_SECONDS = FLIGHT_WAIT_SECONDS_MAX + 0.1;

/**
 * Makes jobs due now that wait for another job's fetch. A job that has had an attempt since, is taken, or waits for a host or
 * a route is left alone. Waits for no lock. Returns how many are due now.
 */
export async function wakeWaitingJobs(sql: Tx, jobs: readonly WaitingJob[]): Promise<number> {
  if (jobs.length === 0) return 0;
  const { count } = await sql`
    update jobs j set due_at = ceil_ms(clock_timestamp())
    from (
      select j.id from jobs j
      join unnest(${jobs.map(({ id }) => id)}::uuid[], ${jobs.map(({ attemptNumber }) => attemptNumber)}::int[]) as w (id, attempt_number)
        on j.id = w.id
      where j.status = 'QUEUED' and j.cache_key is not null and j.deferred_by is null and j.attempt_number = w.attempt_number
        and j.due_at > clock_timestamp() and j.due_at <= clock_timestamp() + make_interval(secs => ${AHEAD_SECONDS})
      order by j.id
      for update of j skip locked
    ) w
    where j.id = w.id and j.status = 'QUEUED'`;
  return count;
}
