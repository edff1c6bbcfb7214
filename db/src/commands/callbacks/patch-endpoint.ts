import {
  type CallbackEndpoint,
  type DisabledReason,
  type EventType,
  failed,
  localFailure,
  ok,
  type Result,
} from "@keble-scraper/contract";
import type { Sql, Tx } from "../../database.ts";
import { type CallbackEndpointRow, toCallbackEndpoint } from "../../queries/callback-endpoint-row.ts";
import { type Actor, appendAudit } from "../../steps/append-audit.ts";
import { CLOSED_AT_ONCE_MAX, closeDeliveries } from "./close-deliveries.ts";
import { endpointColumns } from "./endpoint-columns.ts";

/** What changes of an endpoint; absent fields stay. `disabledReason` says who disables it, and null enables it. */
export type EndpointPatch = {
  readonly url?: string;
  readonly events?: readonly EventType[];
  readonly disabledReason?: Exclude<DisabledReason, "GONE"> | null;
};

type PatchOptions = {
  /** How many waiting deliveries one call ends at most. */
  readonly closedMax?: number;
  readonly retentionDays?: number;
};

const STILL_CLOSING =
  "Events from before the endpoint was disabled are still being ended. Enable it again in a minute.";

/**
 * Changes an endpoint, with an audit row per kind of change in its transaction. Disabling ends its waiting deliveries;
 * enabling sends none of them: what still waits from before is ended first. When that is more than is ended at once, the
 * answer is CONFLICT with RETRY, and nothing changed but that as many were ended; the sweep or the next call ends others.
 * Enabling an enabled endpoint, or disabling a disabled one, changes nothing. `callerId` null is an operator. NOT_FOUND: no
 * such endpoint of that caller.
 */
export async function patchEndpoint(
  sql: Sql,
  target: { readonly id: string; readonly callerId: string | null },
  patch: EndpointPatch,
  by: Actor,
  { closedMax = CLOSED_AT_ONCE_MAX, retentionDays }: PatchOptions = {},
): Promise<Result<CallbackEndpoint>> {
  return sql.begin(async (tx) => {
    const before = await lockEndpoint(tx, target);
    if (before === null) return failed(localFailure("NOT_FOUND"));
    const fields = [patch.url === undefined ? [] : ["url"], patch.events === undefined ? [] : ["events"]].flat();
    const enables = patch.disabledReason === null && before.disabledReason !== null;
    const disables = typeof patch.disabledReason === "string" && before.disabledReason === null;
    if (enables && (await closeDeliveries(tx, target.id, closedMax)) === closedMax) {
      return failed(localFailure("CONFLICT", { disposition: "RETRY", message: STILL_CLOSING }));
    }
    const reason = enables ? null : disables ? patch.disabledReason : before.disabledReason;
    const [after] = await tx<[CallbackEndpointRow]>`
      update callback_endpoints
      set url = coalesce(${patch.url ?? null}, url), events = coalesce(${(patch.events as string[] | undefined) ?? null}::text[], events),
          disabled_reason = ${reason},
          disabled_at = case when ${reason}::text is null then null else coalesce(disabled_at, clock_timestamp()) end,
          updated_at = clock_timestamp()
      where id = ${target.id}
      returning ${endpointColumns(tx)}`;
    if (disables) await closeDeliveries(tx, target.id, closedMax);
    const subject = { by, callerId: after.callerId, subject: `callback-endpoint:${target.id}` };
    const changed = { action: "callback-endpoint.changed", ...subject, details: { fields: fields.join(" ") } };
    if (fields.length > 0) await appendAudit(tx, changed, retentionDays);
    if (enables) await appendAudit(tx, { action: "callback-endpoint.enabled", ...subject }, retentionDays);
    if (disables) {
      await appendAudit(tx, { action: "callback-endpoint.disabled", ...subject, details: { reason } }, retentionDays);
    }
    return ok(toCallbackEndpoint(after));
  });
}

/** Takes an endpoint's row until the transaction ends: nobody else closes, opens or claims for it meanwhile. */
export async function lockEndpoint(
  tx: Tx,
  target: { readonly id: string; readonly callerId: string | null },
): Promise<CallbackEndpointRow | null> {
  const [row] = await tx<CallbackEndpointRow[]>`
    select ${endpointColumns(tx)} from callback_endpoints
    where id = ${target.id} and deleted_at is null and (${target.callerId}::text is null or caller_id = ${target.callerId})
    for no key update`;
  return row ?? null;
}
