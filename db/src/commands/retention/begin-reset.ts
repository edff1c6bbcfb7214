import type { Sql } from "../../database.ts";
import { type Actor, appendAudit } from "../../steps/append-audit.ts";
import type { ResetEvidence, ResetProgress } from "./reset-run.ts";

const NOTHING_GONE: ResetProgress = { objects: 0, rows: 0, keys: 0 };

/**
 * Begins a campaign whose evidence was checked: its row is RUNNING from here on, audited as `reset.started`. Only the owner
 * of the schema may. A campaign that is there already is left as it is: then this is false.
 */
export async function beginReset(
  sql: Sql,
  campaign: string,
  evidence: ResetEvidence,
  by: Actor,
  retentionDays?: number,
): Promise<boolean> {
  return sql.begin(async (tx) => {
    const { count } = await tx`
      insert into reset_runs (campaign, state, audit_id, evidence)
      values (${campaign}, 'RUNNING', ${evidence.audit}, ${tx.json({ shown: evidence, gone: NOTHING_GONE })})
      on conflict do nothing`;
    if (count === 0) return false;
    const entry = { action: "reset.started", by, callerId: null, subject: `reset:${campaign}`, details: evidence };
    await appendAudit(tx, entry, retentionDays);
    return true;
  });
}

/**
 * Holds the one turn at resetting this database until it is given back or the connection ends; null: another process has it. It
 * takes a connection of the pool for as long.
 */
export async function takeResetTurn(sql: Sql): Promise<(() => Promise<void>) | null> {
  const connection = await sql.reserve();
  const [row] = await connection<{ taken: boolean }[]>`
    select pg_try_advisory_lock(hashtextextended('reset', 0)) as taken`;
  if (row?.taken !== true) {
    connection.release();
    return null;
  }
  return async () => {
    await connection`select pg_advisory_unlock(hashtextextended('reset', 0))`;
    connection.release();
  };
}
