import { sql } from "drizzle-orm";
import { check, pgTable, smallint, text, uuid } from "drizzle-orm/pg-core";
import { time } from "./columns.ts";

/**
 * The store that this database's rows are of: at most one row, written by `migrate` alone, holding no secret. It is complete,
 * and services start on it, once `claimed_at` says that the store's own mark names the same owner and claim.
 */
export const storeNamespace = pgTable(
  "store_namespace",
  {
    id: smallint("id").primaryKey(),
    kind: text("kind").notNull().$type<"LOCAL" | "S3">(),
    prefix: text("prefix").notNull(),
    endpoint: text("endpoint"),
    bucket: text("bucket"),
    directory: text("directory"),
    owner: text("owner").notNull(),
    /** Random: tells this database from another one that was given the same owner's name. */
    claim: uuid("claim").notNull(),
    createdAt: time("created_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    claimedAt: time("claimed_at"),
  },
  (table) => [
    check("store_namespace_one", sql`${table.id} = 1`),
    check(
      "store_namespace_place",
      sql`case ${table.kind}
            when 'S3' then ${table.endpoint} is not null and ${table.bucket} is not null and ${table.directory} is null
            when 'LOCAL' then ${table.endpoint} is null and ${table.bucket} is null and ${table.directory} is not null
            else false end`,
    ),
  ],
);
