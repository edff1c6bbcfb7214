import { sql } from "drizzle-orm";
import { index, pgTable, text, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import { blobs } from "./blobs.ts";
import { bytes, time } from "./columns.ts";

/**
 * Stored objects to delete: blobs that nothing holds (`blob_id`), losers of two equal puts, orphans of a listing. A row goes
 * when its object is gone.
 */
export const objectDeletions = pgTable(
  "object_deletions",
  {
    id: uuid("id").primaryKey(),
    sha256: bytes("sha256").notNull(),
    generation: text("generation").notNull(),
    /** The DELETING blob that goes with the object; null: no row ever named it. */
    blobId: uuid("blob_id").references(() => blobs.id),
    createdAt: time("created_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    dueAt: time("due_at")
      .notNull()
      .default(sql`clock_timestamp()`),
  },
  (table) => [
    // takeObjectDeletions, longest due first; getStats
    index("object_deletions_due").on(table.dueAt),
    // listUnnamedObjects: is this object on its way out; and no object twice
    uniqueIndex("object_deletions_object").on(table.sha256, table.generation),
    // one per blob; the check of the key when a blob goes
    uniqueIndex("object_deletions_blob")
      .on(table.blobId)
      .where(sql`blob_id is not null`),
  ],
);
