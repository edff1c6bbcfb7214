import {
  Budget,
  type BudgetPeriod,
  type BudgetScope,
  type DetailedFailure,
  ok,
  type Page,
  type Result,
} from "@keble-scraper/contract";
import { and, asc, eq, sql } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { budgets } from "../schema/budgets.ts";
import { refusedCursor } from "./cursor.ts";

/** What was spent in one period. Caps are settings, so no row knows them. */
export type BudgetRow = {
  readonly scope: BudgetScope;
  /** The route, or the caller. */
  readonly name: string;
  readonly period: BudgetPeriod;
  /** The first day of the period (UTC), YYYY-MM-DD. */
  readonly startsOn: string;
  readonly settledMicros: number;
  /** Out with attempts that run. */
  readonly reservedMicros: number;
  /** What attempts cost beyond their reservations. */
  readonly overrunMicros: number;
};

/** Where a page of budgets ended. */
export type BudgetKey = Pick<BudgetRow, "scope" | "name" | "period" | "startsOn">;
const BudgetKey = Budget.pick({ scope: true, name: true, period: true, startsOn: true });

type BudgetFilter = {
  readonly scope?: BudgetScope | undefined;
  readonly name?: string | undefined;
  readonly period?: BudgetPeriod | undefined;
  /** Absent: the periods that run now. */
  readonly startsOn?: string | undefined;
  /** The last of the page before; null: from the start. */
  readonly after: BudgetKey | null;
  readonly limit: number;
};

/** A page of budgets, by scope, name and period. A period without a reservation has no row. */
export async function listBudgets(reads: PostgresJsDatabase, filter: BudgetFilter): Promise<Page<BudgetRow>> {
  const { after } = filter;
  const today = sql`(clock_timestamp() at time zone 'UTC')::date`;
  const rows = await reads
    .select()
    .from(budgets)
    .where(
      and(
        filter.scope === undefined ? undefined : eq(budgets.scope, filter.scope),
        filter.name === undefined ? undefined : eq(budgets.name, filter.name),
        filter.period === undefined ? undefined : eq(budgets.period, filter.period),
        filter.startsOn === undefined
          ? sql`((${budgets.period} = 'DAY' and ${budgets.startsOn} = ${today})
                 or (${budgets.period} = 'MONTH' and ${budgets.startsOn} = month_of(${today})))`
          : eq(budgets.startsOn, filter.startsOn),
        after === null
          ? undefined
          : sql`(${budgets.scope}, ${budgets.name}, ${budgets.period}, ${budgets.startsOn})
                > (${after.scope}, ${after.name}, ${after.period}, ${after.startsOn}::date)`,
      ),
    )
    .orderBy(asc(budgets.scope), asc(budgets.name), asc(budgets.period), asc(budgets.startsOn))
    .limit(filter.limit + 1);
  const items = rows.slice(0, filter.limit) as BudgetRow[];
  const last = items.at(-1);
  return { items, nextCursor: rows.length > filter.limit && last !== undefined ? encodeKey(last) : null };
}

/** The key behind a list's cursor; null: from the start. One that is not ours is refused, whatever it would have named. */
export function readBudgetCursor(cursor: string | undefined): Result<BudgetKey | null, DetailedFailure> {
  if (cursor === undefined) return ok(null);
  const [scope, name, period, startsOn] = Buffer.from(cursor, "base64url").toString("latin1").split(" ");
  const key = BudgetKey.safeParse({ scope, name, period, startsOn });
  return key.success ? ok(key.data) : refusedCursor();
}

function encodeKey({ scope, name, period, startsOn }: BudgetKey): string {
  return Buffer.from(`${scope} ${name} ${period} ${startsOn}`, "latin1").toString("base64url");
}
