import { sql } from "drizzle-orm";
import { bigint, check, integer, pgTable, text, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import { blobs } from "./blobs.ts";
import { bytes, time } from "./columns.ts";

/** What a caller fetched: the public id of bytes, one AVAILABLE row per caller and hash. */
export const artifacts = pgTable(
  "artifacts",
  {
    id: uuid("id").primaryKey(),
    callerId: text("caller_id").notNull(),
    blobId: uuid("blob_id").references(() => blobs.id),
    state: text("state").notNull().default("AVAILABLE"),
    sha256: bytes("sha256").notNull(),
    sizeBytes: bigint("size_bytes", { mode: "number" }).notNull(),
    contentType: text("content_type"),
    sourceUrl: text("source_url").notNull(),
    finalUrl: text("final_url").notNull(),
    httpStatus: integer("http_status").notNull(),
    fetchedAt: time("fetched_at").notNull(),
    createdAt: time("created_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    deletedAt: time("deleted_at"),
  },
  (table) => [
    // settleJobs. One AVAILABLE blob per hash makes (caller, blob) the same as (caller, sha256) without random keys.
    uniqueIndex("artifacts_available")
      .on(table.callerId, table.blobId)
      .where(sql`state = 'AVAILABLE'`),
    check("artifacts_state", sql`${table.state} in ('AVAILABLE', 'DELETED')`),
    check("artifacts_blob", sql`${table.state} <> 'AVAILABLE' or ${table.blobId} is not null`),
  ],
);
