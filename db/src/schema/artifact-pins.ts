import { sql } from "drizzle-orm";
import { bigint, check, pgTable, primaryKey, text, uuid } from "drizzle-orm/pg-core";
import { artifacts } from "./artifacts.ts";
import { time } from "./columns.ts";

/**
 * What its caller's own systems want kept, one row per artifact and owner. A pin holds while `expires_at` is ahead, or null
 * (indefinitely); a released one stays, with its revision, as long as the artifact's row.
 */
export const artifactPins = pgTable(
  "artifact_pins",
  {
    artifactId: uuid("artifact_id")
      .notNull()
      .references(() => artifacts.id, { onDelete: "cascade" }),
    owner: text("owner").notNull(),
    retentionRevision: bigint("retention_revision", { mode: "number" }).notNull(),
    createdAt: time("created_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    updatedAt: time("updated_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    expiresAt: time("expires_at"),
  },
  (table) => [
    primaryKey({ columns: [table.artifactId, table.owner] }),
    check("artifact_pins_revision", sql`${table.retentionRevision} between 1 and 9007199254740991`),
  ],
);
