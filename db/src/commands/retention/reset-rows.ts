import type { Sql } from "../../database.ts";
import { addGone } from "./reset-run.ts";
import type { ResetTable } from "./reset-tables.ts";

/** A job takes its attempts with it: fewer of them in a batch. */
const BATCH = 5_000;
const JOB_BATCH = 500;

/** Deletes a batch of a table's rows, and says how many: 0, it is empty. Attempts leave with their jobs. */
export async function deleteResetRows(sql: Sql, campaign: string, table: ResetTable): Promise<number> {
  if (table === "attempts") return 0;
  return sql.begin(async (tx) => {
    const limit = table === "jobs" ? JOB_BATCH : BATCH;
    const { count } = await tx`
      delete from ${tx(table)} where ctid = any(array(select ctid from ${tx(table)} limit ${limit}))`;
    await addGone(tx, campaign, "rows", count);
    return count;
  });
}
