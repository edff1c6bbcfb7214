import { type Budget, ListBudgetsAnswer, ListBudgetsCall, ok } from "@keble-scraper/contract";
import { type BudgetRow, listBudgets as readBudgets, readBudgetCursor } from "@keble-scraper/db";
import type { FetchingContext } from "../context.ts";
import { forOperators } from "../for-operators.ts";
import { procedure } from "../procedure.ts";

/** A page of budgets, with the caps of the settings beside them. */
export const listBudgets = procedure
  .input(ListBudgetsCall)
  .output(ListBudgetsAnswer)
  .query(({ ctx, input: { principal, query } }) =>
    forOperators(principal, async () => {
      const { cursor, ...filter } = query;
      const after = readBudgetCursor(cursor);
      if (!after.ok) return after;
      const page = await readBudgets(ctx.database.reads, { ...filter, after: after.value });
      return ok({ items: page.items.map((row) => toBudget(row, ctx)), nextCursor: page.nextCursor });
    }),
  );

function toBudget(row: BudgetRow, { catalogue, callerCaps }: FetchingContext): Budget {
  const caps = row.scope === "CALLER" ? callerCaps : catalogue.find(({ route }) => route === row.name)?.caps;
  const capMicros = (row.period === "DAY" ? caps?.dayMicros : caps?.monthMicros) ?? null;
  const { scope, name, period, startsOn, settledMicros, reservedMicros, overrunMicros } = row;
  return { scope, name, period, startsOn, capMicros, settledMicros, reservedMicros, overrunMicros };
}
