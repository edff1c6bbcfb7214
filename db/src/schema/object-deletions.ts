import { sql } from "drizzle-orm";
import { index, pgTable, text, uuid } from "drizzle-orm/pg-core";
import { bytes, time } from "./columns.ts";

/** Stored objects that no row refers to: the loser of two equal puts is queued here in the settle's transaction. */
export const objectDeletions = pgTable(
  "object_deletions",
  {
    id: uuid("id").primaryKey(),
    sha256: bytes("sha256").notNull(),
    generation: text("generation").notNull(),
    createdAt: time("created_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    dueAt: time("due_at")
      .notNull()
      .default(sql`clock_timestamp()`),
  },
  // the deletion sweep, oldest first
  (table) => [index("object_deletions_due").on(table.dueAt)],
);
