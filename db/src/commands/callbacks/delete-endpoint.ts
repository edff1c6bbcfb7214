import { failed, localFailure, ok, type Result } from "@keble-scraper/contract";
import type { Sql } from "../../database.ts";
import { type Actor, appendAudit } from "../../steps/append-audit.ts";
import { CLOSED_AT_ONCE_MAX, closeDeliveries } from "./close-deliveries.ts";
import { lockEndpoint } from "./patch-endpoint.ts";

type DeleteOptions = {
  /** REFUSE_OPEN answers CONFLICT while a delivery waits or is under way; CLOSE_OPEN ends the waiting ones. */
  readonly open: "REFUSE_OPEN" | "CLOSE_OPEN";
  readonly retentionDays?: number;
};

/**
 * Deletes an endpoint, with its audit row in one transaction: its name is free, its secrets are gone, nothing is claimed
 * for it any more. The row stays, because jobs and events refer to it. `callerId` null is an operator.
 */
export async function deleteEndpoint(
  sql: Sql,
  target: { readonly id: string; readonly callerId: string | null },
  by: Actor,
  options: DeleteOptions,
): Promise<Result<null>> {
  return sql.begin(async (tx) => {
    const endpoint = await lockEndpoint(tx, target);
    if (endpoint === null) return failed(localFailure("NOT_FOUND"));
    // After the lock and in a statement of its own: a claim that was under way is seen.
    const [open] = await tx<[{ found: boolean }]>`
      select exists (select 1 from callback_deliveries where endpoint_id = ${target.id} and state = 'PENDING')
          or exists (select 1 from callback_deliveries where endpoint_id = ${target.id} and lease_token is not null) as found`;
    if (open.found && options.open === "REFUSE_OPEN") {
      return failed(localFailure("CONFLICT", { message: "The endpoint has open events." }));
    }
    await tx`
      update callback_endpoints set deleted_at = clock_timestamp(), updated_at = clock_timestamp() where id = ${target.id}`;
    await tx`delete from callback_secrets where endpoint_id = ${target.id}`;
    if (open.found) await closeDeliveries(tx, target.id, CLOSED_AT_ONCE_MAX);
    await appendAudit(
      tx,
      {
        action: "callback-endpoint.deleted",
        by,
        callerId: endpoint.callerId,
        subject: `callback-endpoint:${target.id}`,
        details: { name: endpoint.name },
      },
      options.retentionDays,
    );
    return ok(null);
  });
}
