import type { Sql } from "../../database.ts";
import { type Actor, appendAudit } from "../../steps/append-audit.ts";

/** What a dry run found, as its audit row keeps it. */
export type ResetPlan = {
  readonly campaign: string;
  readonly database: string;
  /** SHA-256 of the inventory, in hex. */
  readonly inventory: string;
  readonly objects: number;
  readonly bytes: number;
};

/** Appends the audit row of a dry run, `reset.planned`, and returns its id: a reset refers to it. Nothing else is written. */
export async function planReset(sql: Sql, plan: ResetPlan, by: Actor, retentionDays?: number): Promise<string> {
  const { campaign, ...details } = plan;
  const entry = { action: "reset.planned", by, callerId: null, subject: `reset:${campaign}`, details };
  return sql.begin((tx) => appendAudit(tx, entry, retentionDays));
}

/** The dry run that an audit row tells of; null: there is no such row, or it tells of something else. */
export async function findResetPlan(
  sql: Sql,
  auditId: string,
): Promise<Pick<ResetPlan, "campaign" | "database" | "inventory"> | null> {
  const [row] = await sql<{ subject: string; details: ResetPlan }[]>`
    select subject, details from audit_events where id = ${auditId} and action = 'reset.planned'`;
  if (row === undefined) return null;
  const { database, inventory } = row.details;
  return { campaign: row.subject.replace(/^reset:/u, ""), database, inventory };
}
