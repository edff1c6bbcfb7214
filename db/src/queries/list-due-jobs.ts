import type { Tx } from "../database.ts";

/** A job that a worker could take now. */
export type DueJob = { readonly id: string; readonly transport: "HTTP" | "RENDER" };

/** The ids and transports of due jobs, longest due first, at most `limit`: what maintenance rings for. */
export async function listDueJobs(sql: Tx, limit: number): Promise<DueJob[]> {
  return sql<DueJob[]>`
    select id, transport from jobs
    where status = 'QUEUED' and due_at <= statement_timestamp()
    order by due_at
    limit ${limit}`;
}
