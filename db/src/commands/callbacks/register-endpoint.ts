import { type CallbackEndpoint, type EventType, failed, localFailure, ok, type Result } from "@keble-scraper/contract";
import { v7 as uuidv7 } from "uuid";
import type { Sql } from "../../database.ts";
import { type CallbackEndpointRow, toCallbackEndpoint } from "../../queries/callback-endpoint-row.ts";
import { type Actor, appendAudit } from "../../steps/append-audit.ts";
import { endpointColumns } from "./endpoint-columns.ts";

/** A signing secret as it is stored: encrypted, with the name of the key that opens it. */
export type SealedSecret = { readonly keyId: string; readonly ciphertext: Buffer };

/** An endpoint to make. `events` null: all types. The id is made by the caller, because the secret is sealed to it. */
export type NewEndpoint = {
  readonly id: string;
  readonly callerId: string;
  readonly name: string;
  readonly url: string;
  readonly events: readonly EventType[] | null;
  readonly attemptBudget: number;
  readonly timeoutMs: number;
  readonly maxConcurrency: number;
  readonly secret: SealedSecret;
};

/**
 * Makes an endpoint with its first secret and its audit row in one transaction. CONFLICT: the caller has an endpoint of
 * that name; a deleted one's name is free. The URL stays out of the audit, because a path may be a secret.
 */
export async function registerEndpoint(
  sql: Sql,
  endpoint: NewEndpoint,
  by: Actor,
  retentionDays?: number,
): Promise<Result<CallbackEndpoint>> {
  return sql.begin(async (tx) => {
    const [row] = await tx<CallbackEndpointRow[]>`
      insert into callback_endpoints (id, caller_id, name, url, events, attempt_budget, timeout_ms, max_concurrency)
      values (${endpoint.id}, ${endpoint.callerId}, ${endpoint.name}, ${endpoint.url}, ${endpoint.events as string[] | null},
              ${endpoint.attemptBudget}, ${endpoint.timeoutMs}, ${endpoint.maxConcurrency})
      on conflict (caller_id, name) where deleted_at is null do nothing
      returning ${endpointColumns(tx)}`;
    if (row === undefined) {
      return failed(localFailure("CONFLICT", { message: "The caller has a callback endpoint of this name." }));
    }
    await tx`
      insert into callback_secrets (id, endpoint_id, key_id, ciphertext)
      values (${uuidv7()}, ${endpoint.id}, ${endpoint.secret.keyId}, ${endpoint.secret.ciphertext})`;
    await appendAudit(
      tx,
      {
        action: "callback-endpoint.registered",
        by,
        callerId: endpoint.callerId,
        subject: `callback-endpoint:${endpoint.id}`,
        details: { name: endpoint.name, keyId: endpoint.secret.keyId },
      },
      retentionDays,
    );
    return ok(toCallbackEndpoint(row));
  });
}
