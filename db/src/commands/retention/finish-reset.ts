import type { Sql } from "../../database.ts";
import { type Actor, appendAudit } from "../../steps/append-audit.ts";
import { addGone, findResetRun, type ResetProgress } from "./reset-run.ts";

/** Ends a campaign whose objects, rows and keys are gone, audited as `reset.done`; null: it was not RUNNING. */
export async function finishReset(
  sql: Sql,
  campaign: string,
  by: Actor,
  retentionDays?: number,
): Promise<ResetProgress | null> {
  return sql.begin(async (tx) => {
    const { count } = await tx`
      update reset_runs set state = 'DONE', ended_at = clock_timestamp() where campaign = ${campaign} and state = 'RUNNING'`;
    const run = await findResetRun(tx, campaign);
    if (count === 0 || run === null) return null;
    const entry = { action: "reset.done", by, callerId: null, subject: `reset:${campaign}`, details: run.gone };
    await appendAudit(tx, entry, retentionDays);
    return run.gone;
  });
}

/** Notes keys of Redis that are gone. */
export async function noteResetKeys(sql: Sql, campaign: string, count: number): Promise<void> {
  await sql.begin((tx) => addGone(tx, campaign, "keys", count));
}
