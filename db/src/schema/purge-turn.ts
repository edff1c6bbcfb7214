import { sql } from "drizzle-orm";
import { check, jsonb, pgTable, smallint } from "drizzle-orm/pg-core";
import { time } from "./columns.ts";

/** The one row that every purging transaction holds: which minute it is, and how many rows of each kind have gone in it. */
export const purgeTurn = pgTable(
  "purge_turn",
  {
    id: smallint("id").primaryKey(),
    minute: time("minute").notNull(),
    purged: jsonb("purged").notNull().default({}),
  },
  (table) => [check("purge_turn_one", sql`${table.id} = 1`)],
);
