import { BudgetPage, BudgetQuery } from "@keble-scraper/contract";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** A page of budgets: what routes and callers spent in the periods that run now, or in those that began on a day. */
export const listBudgets = apiProcedure({ kinds: ["OPERATOR"], scope: null })
  .input(BudgetQuery)
  .output(BudgetPage)
  .query(({ ctx, input, signal }) =>
    unwrap(ctx.services.fetching.listBudgets.query({ principal: ctx.principal, query: input }, ctx.call(signal))),
  );
