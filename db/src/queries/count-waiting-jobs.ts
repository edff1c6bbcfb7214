import type { Tx } from "../database.ts";

/** How far waiting jobs are counted: more of them are spread as if they were so many. */
const WAITING_MAX = 10_000;

/**
 * How many jobs wait for a host or a route, 10,000 at the most. By route: of the 10,000 jobs that are due first, those
 * whose next route it is.
 */
export async function countWaitingJobs(
  sql: Tx,
  queue: { readonly by: "HOST" | "ROUTE"; readonly key: string },
): Promise<number> {
  const jobs =
    queue.by === "HOST"
      ? sql`select true as waits from jobs where host_key = ${queue.key} and status = 'QUEUED' limit ${WAITING_MAX}`
      : sql`select routes[route_index + 1] = ${queue.key} as waits from jobs where status = 'QUEUED' order by due_at limit ${WAITING_MAX}`;
  const [row] = await sql<[{ count: number }]>`select count(*)::int as count from (${jobs}) waiting where waits`;
  return row.count;
}
