import { doublePrecision, pgTable, text } from "drizzle-orm/pg-core";

/**
 * Admission clocks while Redis is away: for each host or route the earliest time, in epoch milliseconds, at which its next
 * request may be sent. Losing a row costs one burst.
 */
export const admissionClocks = pgTable("admission_clocks", {
  key: text("key").primaryKey(),
  nextAtMs: doublePrecision("next_at_ms").notNull(),
});
