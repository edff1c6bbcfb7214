import type { Tx } from "../database.ts";

/** Milliseconds until the next open job's deadline, negative when it has passed; null without open jobs. */
export async function findNextDeadlineMs(sql: Tx): Promise<number | null> {
  const [row] = await sql<{ ms: number }[]>`
    select extract(epoch from deadline_at - clock_timestamp())::float8 * 1000 as ms
    from jobs where finished_at is null order by deadline_at limit 1`;
  return row?.ms ?? null;
}
