import { z } from "zod";
import { Micros, MicrosSum, Name } from "./id.ts";
import { PageQuery, pageOf } from "./page.ts";
import { Day } from "./time.ts";

/** Whose money a budget counts: all callers' by one route, or one caller's by all routes. */
export const BUDGET_SCOPES = ["ROUTE", "CALLER"] as const;
export type BudgetScope = (typeof BUDGET_SCOPES)[number];

/** How long a budget runs, in UTC. */
export const BUDGET_PERIODS = ["DAY", "MONTH"] as const;
export type BudgetPeriod = (typeof BUDGET_PERIODS)[number];

/** Money of one route or caller in one day or month. It begins with its first reservation. */
export const Budget = z.strictObject({
  scope: z.enum(BUDGET_SCOPES),
  /** The route, or the caller. */
  name: Name,
  period: z.enum(BUDGET_PERIODS),
  /** The first day of the period (UTC). */
  startsOn: Day,
  /** What the settings allow now; null: no cap. */
  capMicros: Micros.nullable(),
  /** What ended attempts cost, each at most its reservation. Caps count it. */
  settledMicros: MicrosSum,
  /** What is out with attempts that run. Caps count it until they end. */
  reservedMicros: MicrosSum,
  /** What ended attempts cost beyond their reservations. Caps do not count it; it quarantines the route. */
  overrunMicros: MicrosSum,
});
export type Budget = z.infer<typeof Budget>;

/**
 * What a list of budgets is narrowed by. `startsOn` absent: the periods that run now; given, those that began on that day
 * (UTC), so a month is asked for by its first day.
 */
export const BudgetQuery = PageQuery.extend({
  scope: z.enum(BUDGET_SCOPES).optional(),
  name: Name.optional(),
  period: z.enum(BUDGET_PERIODS).optional(),
  startsOn: Day.optional(),
});
export type BudgetQuery = z.infer<typeof BudgetQuery>;

/** A page of budgets. */
export const BudgetPage = pageOf(Budget);
export type BudgetPage = z.infer<typeof BudgetPage>;
