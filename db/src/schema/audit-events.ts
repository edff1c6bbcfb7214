import { sql } from "drizzle-orm";
import { index, jsonb, pgTable, text, uuid } from "drizzle-orm/pg-core";
import { time } from "./columns.ts";

/** Who did what: appended in the action's own transaction, never changed, leaves only by its own clock (triggers hold it). */
export const auditEvents = pgTable(
  "audit_events",
  {
    id: uuid("id").primaryKey(),
    callerId: text("caller_id"),
    action: text("action").notNull(),
    /** An API key's id, or `system:<part>`. */
    actor: text("actor").notNull(),
    subject: text("subject").notNull(),
    requestId: text("request_id"),
    details: jsonb("details").notNull().default({}),
    occurredAt: time("occurred_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    expiresAt: time("expires_at").notNull(),
  },
  (table) => [
    // purgeAudit, getStats
    index("audit_events_expires").on(table.expiresAt),
    // listAuditEvents by what it is narrowed by, newest first
    index("audit_events_subject").on(table.subject, table.id),
    index("audit_events_action").on(table.action, table.id),
    index("audit_events_actor").on(table.actor, table.id),
    index("audit_events_caller").on(table.callerId, table.id),
  ],
);
