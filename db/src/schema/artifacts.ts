import { sql } from "drizzle-orm";
import { bigint, check, index, integer, pgTable, text, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import { blobs } from "./blobs.ts";
import { bytes, time } from "./columns.ts";

/**
 * What a caller fetched: the public id of bytes, one AVAILABLE row per caller and hash. A DELETED one is a tombstone (410)
 * and names no blob. `review_at` is when maintenance looks at it next: an AVAILABLE one that nothing holds any more is
 * deleted then, a tombstone that nothing refers to goes; whatever may end a hold brings it forward, and a look that finds a hold puts
 * it off to that hold's end (infinity: an indefinite pin).
 */
export const artifacts = pgTable(
  "artifacts",
  {
    id: uuid("id").primaryKey(),
    callerId: text("caller_id").notNull(),
    blobId: uuid("blob_id").references(() => blobs.id),
    state: text("state").notNull().default("AVAILABLE"),
    /** How many owners have ever pinned it. Pins that count are found by their rows, never by this. */
    pinCount: integer("pin_count").notNull().default(0),
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
    reviewAt: time("review_at")
      .notNull()
      .default(sql`clock_timestamp()`),
  },
  (table) => [
    // settleJobs, finishFromCache, reviewArtifacts, retireBlob. One AVAILABLE blob per hash makes (caller, blob) the same
    // as (caller, sha256) without random keys. Tombstones have no blob, so they never collide.
    uniqueIndex("artifacts_available_blob").on(table.blobId, table.callerId),
    // reviewArtifacts, purgeTombstones and getStats, each of one state: neither reads past what the other leaves
    index("artifacts_review").on(table.state, table.reviewAt),
    check("artifacts_state", sql`${table.state} in ('AVAILABLE', 'DELETED')`),
    check("artifacts_blob", sql`(${table.state} = 'AVAILABLE') = (${table.blobId} is not null)`),
    check("artifacts_deleted", sql`(${table.state} = 'DELETED') = (${table.deletedAt} is not null)`),
    check("artifacts_pin_count", sql`${table.pinCount} >= 0`),
  ],
);
