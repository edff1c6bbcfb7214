import { sql } from "drizzle-orm";
import { bigint, check, date, index, pgTable, primaryKey, text, uuid } from "drizzle-orm/pg-core";
import { time } from "./columns.ts";
import { jobs } from "./jobs.ts";

/**
 * What a route or a caller spent in one day or month (UTC). `reserved` is out with attempts that have not settled;
 * `overrun` is what settles above their reservations cost, which caps do not count.
 */
export const budgets = pgTable(
  "budgets",
  {
    scope: text("scope").notNull(),
    name: text("name").notNull(),
    period: text("period").notNull(),
    startsOn: date("starts_on", { mode: "string" }).notNull(),
    settledMicros: bigint("settled_micros", { mode: "number" }).notNull().default(0),
    reservedMicros: bigint("reserved_micros", { mode: "number" }).notNull().default(0),
    overrunMicros: bigint("overrun_micros", { mode: "number" }).notNull().default(0),
  },
  (table) => [
    primaryKey({ columns: [table.scope, table.name, table.period, table.startsOn] }),
    // listBudgets, newest period first
    index("budgets_period").on(table.startsOn),
    check("budgets_scope", sql`${table.scope} in ('ROUTE', 'CALLER')`),
    check("budgets_period", sql`${table.period} in ('DAY', 'MONTH')`),
    check(
      "budgets_amounts",
      sql`${table.settledMicros} >= 0 and ${table.reservedMicros} >= 0 and ${table.overrunMicros} >= 0`,
    ),
  ],
);

/** Money that an attempt may spend, while it runs: one row per lease, deleted by whatever ends the attempt. */
export const reservations = pgTable(
  "reservations",
  {
    leaseToken: uuid("lease_token").primaryKey(),
    jobId: uuid("job_id")
      .notNull()
      .references(() => jobs.id, { onDelete: "cascade" }),
    callerId: text("caller_id").notNull(),
    route: text("route").notNull(),
    /** The day of its moment (UTC); its month is that day's. */
    day: date("day", { mode: "string" }).notNull(),
    reservedMicros: bigint("reserved_micros", { mode: "number" }).notNull(),
    createdAt: time("created_at")
      .notNull()
      .default(sql`clock_timestamp()`),
  },
  (table) => [
    index("reservations_job").on(table.jobId),
    check("reservations_amount", sql`${table.reservedMicros} >= 0`),
  ],
);
