import { sql } from "drizzle-orm";
import { bigint, check, pgTable, text, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import { bytes, time } from "./columns.ts";

/** Stored bytes, internal: one AVAILABLE row per hash. The object's key is <prefix>/<sha256>/<generation>. */
export const blobs = pgTable(
  "blobs",
  {
    id: uuid("id").primaryKey(),
    state: text("state").notNull().default("AVAILABLE"),
    sha256: bytes("sha256").notNull(),
    generation: text("generation").notNull(),
    sizeBytes: bigint("size_bytes", { mode: "number" }).notNull(),
    createdAt: time("created_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    deletedAt: time("deleted_at"),
  },
  (table) => [
    // settleJobs, findAvailableBlob. The one index with random keys: they cost full-page images.
    uniqueIndex("blobs_available")
      .on(table.sha256)
      .where(sql`state = 'AVAILABLE'`),
    check("blobs_state", sql`${table.state} in ('AVAILABLE', 'DELETING', 'DELETED')`),
    check("blobs_sha256", sql`octet_length(${table.sha256}) = 32`),
  ],
);
