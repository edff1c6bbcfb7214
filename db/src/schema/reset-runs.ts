import { sql } from "drizzle-orm";
import { check, jsonb, pgTable, text, uuid } from "drizzle-orm/pg-core";
import { time } from "./columns.ts";

/** Resets that were applied, one row per campaign: RUNNING until everything it had to delete is gone. */
export const resetRuns = pgTable(
  "reset_runs",
  {
    campaign: text("campaign").primaryKey(),
    state: text("state").notNull().$type<"RUNNING" | "DONE">(),
    /** The audit row of the dry run that it carries out. */
    auditId: uuid("audit_id").notNull(),
    /** What was shown for it, and what has gone so far. Holds no secret. */
    evidence: jsonb("evidence").notNull(),
    startedAt: time("started_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    endedAt: time("ended_at"),
  },
  (table) => [
    check("reset_runs_state", sql`${table.state} in ('RUNNING', 'DONE')`),
    check("reset_runs_ended", sql`(${table.state} = 'DONE') = (${table.endedAt} is not null)`),
  ],
);
