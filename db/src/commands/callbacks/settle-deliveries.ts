import type { Sql } from "../../database.ts";
import { settleGone } from "./settle-gone.ts";
import { settleTries } from "./settle-tries.ts";
import type { SettleClocks, TryReport, TryVerdict } from "./try-report.ts";

/**
 * Settles 1 to 50 tries, fenced row by row: every dependent row is selected from the deliveries whose token is still
 * held, so a stale report writes nothing. All are one statement, but for those that disable their endpoint (410): each
 * of these is a transaction of its own, which takes the endpoint first.
 */
export async function settleDeliveries(
  sql: Sql,
  reports: readonly TryReport[],
  clocks: SettleClocks,
): Promise<TryVerdict[]> {
  const verdicts = await settleTries(
    sql,
    reports.filter((report) => report.next !== "GONE"),
    clocks,
  );
  for (const report of reports) {
    if (report.next === "GONE") verdicts.push(...(await settleGone(sql, report, clocks)));
  }
  return verdicts;
}
