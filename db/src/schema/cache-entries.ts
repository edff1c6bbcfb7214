import { sql } from "drizzle-orm";
import { bigint, check, index, jsonb, pgTable, primaryKey, text, uuid } from "drizzle-orm/pg-core";
import { artifacts } from "./artifacts.ts";
import { bytes, time } from "./columns.ts";

/**
 * Stored answers that later jobs may take, one per key and caller. `caller_id` is "" for an answer that all callers share.
 * An entry goes with its artifact; one without an artifact is an answer that has no body.
 */
export const cacheEntries = pgTable(
  "cache_entries",
  {
    key: bytes("key").notNull(),
    callerId: text("caller_id").notNull(),
    artifactId: uuid("artifact_id").references(() => artifacts.id, { onDelete: "cascade" }),
    /** What the job's result said, without what the artifact's row says. */
    result: jsonb("result").notNull(),
    sizeBytes: bigint("size_bytes", { mode: "number" }).notNull(),
    /** What a revalidation asks with; both null: the answer can only be fetched again. */
    etag: text("etag"),
    lastModified: text("last_modified"),
    /** When the target last vouched for it: its age counts from here. */
    validatedAt: time("validated_at").notNull(),
    expiresAt: time("expires_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.key, table.callerId] }),
    // reviewArtifacts, retireBlob, and the cascade from the artifact
    index("cache_entries_artifact")
      .on(table.artifactId, table.expiresAt)
      .where(sql`artifact_id is not null`),
    // purgeCache, getStats
    index("cache_entries_expires").on(table.expiresAt),
    check("cache_entries_key", sql`octet_length(${table.key}) = 32`),
  ],
);

/**
 * Who is fetching a key right now: bound to a lease, void when that lease is over. `held_until` is that lease's end as it was
 * when the row was taken; the job's own row says whether it still stands.
 */
export const cacheFlights = pgTable(
  "cache_flights",
  {
    key: bytes("key").notNull(),
    callerId: text("caller_id").notNull(),
    jobId: uuid("job_id").notNull(),
    leaseToken: uuid("lease_token").notNull(),
    heldUntil: time("held_until").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.key, table.callerId] }),
    // purgeFlights, getStats
    index("cache_flights_held").on(table.heldUntil),
  ],
);
