import type { Tx } from "../database.ts";

/** How many jobs of a caller wait, counted up to `upTo`. */
export async function countQueuedJobs(sql: Tx, callerId: string, upTo: number): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from (
      select 1 from jobs where caller_id = ${callerId} and finished_at is null and status = 'QUEUED' limit ${upTo}
    ) waiting`;
  return row?.count ?? 0;
}
