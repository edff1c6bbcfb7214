import { sql } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";

/** How far jobs of an hour are counted, 28 a second: their rows are read, not an index. */
const ENDED_MAX = 100_000;

/** How the jobs of an hour ended; `isLowerBound`: there were more. */
export type EndedInHour = {
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly isLowerBound: boolean;
};

/**
 * Counts the jobs that ended in the hour that begins at `hour`, at most 100,000 of them. Rows lie about in the order of
 * their ends, so the index of block ranges finds them: a second is left to it, and then the statement fails.
 */
export async function countEndedInHour(reads: PostgresJsDatabase, hour: Date): Promise<EndedInHour> {
  return reads.transaction(
    async (tx) => {
      // Any other index would be read whole for this.
      await tx.execute(sql`set local enable_seqscan = off`);
      await tx.execute(sql`set local enable_indexscan = off`);
      await tx.execute(sql`set local enable_indexonlyscan = off`);
      await tx.execute(sql`set local statement_timeout = 1000`);
      const from = hour.toISOString();
      const [row] = await tx.execute<{ succeeded: number; failed: number; cancelled: number }>(sql`
        select (count(*) filter (where status = 'SUCCEEDED'))::int as succeeded,
               (count(*) filter (where status = 'FAILED'))::int as failed,
               (count(*) filter (where status = 'CANCELLED'))::int as cancelled
        from (select status from jobs
              where finished_at >= ${from}::timestamptz and finished_at < ${from}::timestamptz + interval '1 hour'
              limit ${ENDED_MAX}) ended`);
      const counts = row ?? { succeeded: 0, failed: 0, cancelled: 0 };
      return { ...counts, isLowerBound: counts.succeeded + counts.failed + counts.cancelled >= ENDED_MAX };
    },
    { accessMode: "read only" },
  );
}
