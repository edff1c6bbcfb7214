import { sql } from "drizzle-orm";
import { bigint, check, date, index, pgTable, primaryKey, text } from "drizzle-orm/pg-core";

/**
 * What a route or a caller spent in one day or month (UTC). `reserved` is out with attempts that run (`jobs.reserved_micros`);
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
    // listBudgets of a day, or of the periods that run
    index("budgets_period").on(table.startsOn),
    check("budgets_scope", sql`${table.scope} in ('ROUTE', 'CALLER')`),
    check("budgets_period", sql`${table.period} in ('DAY', 'MONTH')`),
    check(
      "budgets_amounts",
      sql`${table.settledMicros} >= 0 and ${table.reservedMicros} >= 0 and ${table.overrunMicros} >= 0`,
    ),
  ],
);
