import { failed, localFailure, ok, type Result } from "@keble-scraper/contract";
import type { Sql } from "../../database.ts";
import { type Actor, appendAudit } from "../../steps/append-audit.ts";
import { eraseJobs } from "../../steps/erase-jobs.ts";

/**
 * Erases an ended job with its attempts, its event with deliveries and tries, its idempotency key and its hold on bytes,
 * and appends the audit row, in one transaction. `callerId` null is an operator, who may erase any. CONFLICT while the job is
 * open, its event is open or a dead letter, or a delivery of it is open; NOT_FOUND for another caller's job.
 *
 * The event is locked first, the order in which a delivery's settle and a replay take these rows, and all is judged after
 * that in a statement of its own: whichever of them comes at the same time is either seen, or finds no event.
 */
export async function deleteJob(
  sql: Sql,
  target: { readonly id: string; readonly callerId: string | null },
  by: Actor,
  retentionDays?: number,
): Promise<Result<null>> {
  const { id, callerId } = target;
  return sql.begin(async (tx) => {
    // An open job has no event to lock yet, and its end isn't waited for.
    const [found] = await tx<{ is_open: boolean }[]>`
      select finished_at is null as is_open from jobs
      where id = ${id} and (${callerId}::text is null or caller_id = ${callerId})`;
    if (found === undefined) return failed(localFailure("NOT_FOUND"));
    if (found.is_open) return failed(localFailure("CONFLICT", { message: "The job is open: cancel it first." }));
    await tx`select 1 from callback_events where job_id = ${id} for update`;
    await tx`select 1 from jobs where id = ${id} for update`;
    const [job] = await tx<{ caller_id: string; status: string; is_held: boolean }[]>`
      select j.caller_id, j.status, exists (
          select 1 from callback_events e
          where e.job_id = j.id and (e.state in ('PENDING', 'LEASED', 'DEAD_LETTER') or exists (
            select 1 from callback_deliveries d where d.event_id = e.id and d.ended_at is null))
        ) as is_held
      from jobs j where j.id = ${id}`;
    if (job === undefined) return failed(localFailure("NOT_FOUND"));
    if (job.is_held) {
      return failed(localFailure("CONFLICT", { message: "The job's callback is open or a dead letter." }));
    }
    await eraseJobs(tx, [id]);
    await appendAudit(
      tx,
      { action: "job.deleted", by, callerId: job.caller_id, subject: `job:${id}`, details: { status: job.status } },
      retentionDays,
    );
    return ok(null);
  });
}
