import { type ApiKey, failed, localFailure, ok, type Result } from "@keble-scraper/contract";
import type { Sql } from "../../database.ts";
import { type ApiKeyRow, toApiKey } from "../../queries/api-key-row.ts";
import { type Actor, appendAudit } from "../../steps/append-audit.ts";

/**
 * Revokes a key, with its audit row in one transaction: from the commit on it finds nobody. A key that was revoked
 * before keeps its first time and gets no second audit row. NOT_FOUND: no such key.
 */
export async function revokeApiKey(sql: Sql, id: string, by: Actor, retentionDays?: number): Promise<Result<ApiKey>> {
  return sql.begin(async (tx) => {
    const [revoked] = await tx<ApiKeyRow[]>`
      update api_keys set revoked_at = clock_timestamp() where id = ${id} and revoked_at is null
      returning id, caller_id, kind, name, scopes, created_at, expires_at, revoked_at`;
    if (revoked !== undefined) {
      await appendAudit(
        tx,
        { action: "api-key.revoked", by, callerId: revoked.caller_id, subject: `api-key:${id}` },
        retentionDays,
      );
      return ok(toApiKey(revoked));
    }
    const [known] = await tx<ApiKeyRow[]>`
      select id, caller_id, kind, name, scopes, created_at, expires_at, revoked_at from api_keys where id = ${id}`;
    return known === undefined ? failed(localFailure("NOT_FOUND")) : ok(toApiKey(known));
  });
}
