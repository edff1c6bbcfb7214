import type { Fragment, Tx } from "../../database.ts";

/** The columns of an endpoint that its read needs, under the names of `CallbackEndpointRow`. */
export function endpointColumns(sql: Tx): Fragment {
  return sql`id, caller_id as "callerId", name, url, events, attempt_budget as "attemptBudget", timeout_ms as "timeoutMs",
    max_concurrency as "maxConcurrency", disabled_reason as "disabledReason", created_at as "createdAt"`;
}
