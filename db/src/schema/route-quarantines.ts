import { sql } from "drizzle-orm";
import { check, pgTable, text, uuid } from "drizzle-orm/pg-core";
import { time } from "./columns.ts";

/** Routes that no job is sent by: one row while a route is quarantined. `lifts_at` null: until somebody releases it. */
export const routeQuarantines = pgTable(
  "route_quarantines",
  {
    route: text("route").primaryKey(),
    jobId: uuid("job_id"),
    /** OPERATOR, a failure's code, or COST_OVERRUN. */
    reason: text("reason").notNull(),
    nativeCode: text("native_code"),
    /** Who set it: an API key's id, or `system:<part>`. */
    actor: text("actor").notNull(),
    note: text("note"),
    quarantinedAt: time("quarantined_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    liftsAt: time("lifts_at"),
    /** When proxy-health last asked the supplier. */
    probedAt: time("probed_at"),
  },
  (table) => [
    check("route_quarantines_lifts", sql`${table.liftsAt} is null or ${table.liftsAt} > ${table.quarantinedAt}`),
  ],
);
