import type { Sql } from "../../database.ts";
import { appendAudit } from "../../steps/append-audit.ts";
import { CLOSED_AT_ONCE_MAX, closeDeliveries } from "./close-deliveries.ts";
import { settleTries } from "./settle-tries.ts";
import type { SettleClocks, TryReport, TryVerdict } from "./try-report.ts";

/**
 * Settles a try that was answered 410 Gone: in one transaction the endpoint is disabled (audited as the service's own
 * act), this delivery and those that wait become dead letters. A stale report disables nothing, and neither does one
 * about a URL that the endpoint no longer has.
 */
export async function settleGone(sql: Sql, report: TryReport, clocks: SettleClocks): Promise<TryVerdict[]> {
  return sql.begin(async (tx) => {
    const [endpoint] = await tx<{ id: string; caller_id: string; is_ours: boolean }[]>`
      select ep.id, ep.caller_id, ep.url = ${report.url} and ep.disabled_at is null and ep.deleted_at is null as is_ours
      from callback_deliveries d join callback_endpoints ep on ep.id = d.endpoint_id
      where d.id = ${report.id}
      for no key update of ep`;
    const verdicts = await settleTries(tx, [report], clocks);
    const isSettled = verdicts.some((verdict) => verdict.verdict === "SETTLED");
    if (endpoint?.is_ours !== true || !isSettled) return verdicts;
    await tx`
      update callback_endpoints
      set disabled_at = clock_timestamp(), disabled_reason = 'GONE', updated_at = clock_timestamp()
      where id = ${endpoint.id}`;
    await closeDeliveries(tx, endpoint.id, CLOSED_AT_ONCE_MAX);
    await appendAudit(
      tx,
      {
        action: "callback-endpoint.disabled",
        by: { actor: "system:callbacks", requestId: null },
        callerId: endpoint.caller_id,
        subject: `callback-endpoint:${endpoint.id}`,
        details: { reason: "GONE" },
      },
      clocks.auditRetentionDays,
    );
    return verdicts;
  });
}
