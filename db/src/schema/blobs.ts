import { sql } from "drizzle-orm";
import { bigint, check, index, pgTable, text, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import { bytes, time } from "./columns.ts";

/**
 * Stored bytes, internal: one AVAILABLE row per hash. The object's key is <prefix>/<sha256>/<generation>. A DELETING one has a
 * row in object_deletions and goes with it, once its object is gone.
 */
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
    /** When its object was last read against its hash; at first, when it was written. */
    verifiedAt: time("verified_at")
      .notNull()
      .default(sql`clock_timestamp()`),
  },
  (table) => [
    // settleJobs, listAvailableBlobs, listUnnamedObjects, takeObjectDeletions. The one index with random keys: they cost
    // full-page images.
    uniqueIndex("blobs_available")
      .on(table.sha256)
      .where(sql`state = 'AVAILABLE'`),
    // takeBlobToVerify, longest unread first
    index("blobs_verified")
      .on(table.verifiedAt)
      .where(sql`state = 'AVAILABLE'`),
    check("blobs_state", sql`${table.state} in ('AVAILABLE', 'DELETING')`),
    check("blobs_sha256", sql`octet_length(${table.sha256}) = 32`),
  ],
);
