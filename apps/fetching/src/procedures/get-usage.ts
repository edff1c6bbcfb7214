import { GetUsageAnswer, GetUsageCall, ROUTES, type UsageItem, formatTime, ok } from "@keble-scraper/contract";
import { type UsageRow, sumUsage } from "@keble-scraper/db";
import { procedure } from "../procedure.ts";
import { readUsageSpan } from "../usage-span.ts";

const LABEL_PREFIX = "label:";

/** What was used in a time. A service is told of its own caller's, whatever it asks for. */
export const getUsage = procedure
  .input(GetUsageCall)
  .output(GetUsageAnswer)
  .query(async ({ ctx, input: { principal, query } }) => {
    const span = readUsageSpan(query, Date.now());
    if (!span.ok) return span;
    const { from, to } = span.value;
    const label = query.groupBy.startsWith(LABEL_PREFIX) ? query.groupBy.slice(LABEL_PREFIX.length) : null;
    const { items, total } = await sumUsage(ctx.database.reads, {
      callerId: principal.kind === "OPERATOR" ? (query.callerId ?? null) : principal.callerId,
      from,
      to,
      groupBy: label === null ? "route" : { label },
    });
    return ok({
      from: formatTime(from),
      to: formatTime(to),
      groupBy: query.groupBy,
      items: items.map((row) => toItem(row, label)),
      total,
    });
  });

function toItem({ key, ...sums }: UsageRow, label: string | null): UsageItem {
  if (label !== null) return { label: key, ...sums };
  const route = ROUTES.find((known) => known === key);
  if (route === undefined) throw new Error("the ledger names a route that the contract does not know");
  return { route, ...sums };
}
