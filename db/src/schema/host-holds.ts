import { index, pgTable, text } from "drizzle-orm/pg-core";
import { time } from "./columns.ts";

/** Hosts whose Retry-After keeps every worker off them, one row a host; a row that has passed means nothing. */
export const hostHolds = pgTable(
  "host_holds",
  {
    hostKey: text("host_key").primaryKey(),
    heldUntil: time("held_until").notNull(),
  },
  // the sweep of passed holds, and the list of those that defer jobs
  (table) => [index("host_holds_until").on(table.heldUntil)],
);
