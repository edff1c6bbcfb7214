import { sql } from "drizzle-orm";
import { check, index, pgTable, smallint, text, uuid } from "drizzle-orm/pg-core";
import { bytes, time } from "./columns.ts";

/** Where the listing scrub is: one row. `cursor` null: at the beginning of a pass. */
export const storeScrub = pgTable(
  "store_scrub",
  {
    id: smallint("id").primaryKey(),
    cursor: text("cursor"),
    passStartedAt: time("pass_started_at"),
    passEndedAt: time("pass_ended_at"),
  },
  (table) => [check("store_scrub_one", sql`${table.id} = 1`)],
);

/**
 * What was found wrong between rows and objects: an object that is not there (MISSING), one whose bytes are not its hash's
 * (DAMAGED), one that no row names (ORPHAN).
 */
export const storeFindings = pgTable(
  "store_findings",
  {
    id: uuid("id").primaryKey(),
    kind: text("kind").notNull().$type<"MISSING" | "DAMAGED" | "ORPHAN">(),
    sha256: bytes("sha256").notNull(),
    generation: text("generation").notNull(),
    foundAt: time("found_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    expiresAt: time("expires_at").notNull(),
  },
  (table) => [
    // getStats
    index("store_findings_kind").on(table.kind, table.foundAt),
    // purgeFindings, getStats
    index("store_findings_expires").on(table.expiresAt),
    check("store_findings_kind", sql`${table.kind} in ('MISSING', 'DAMAGED', 'ORPHAN')`),
  ],
);
