import type { ApiKey, CreatedApiKey } from "@keble-scraper/contract";
import type { Sql } from "../../database.ts";
import { type ApiKeyRow, toApiKey } from "../../queries/api-key-row.ts";
import type { Actor } from "../../steps/append-audit.ts";
import { insertApiKey } from "./insert-api-key.ts";

/** The first operator key, or the one that is in use already. */
export type BootstrappedKey =
  | { readonly state: "CREATED"; readonly key: CreatedApiKey }
  | { readonly state: "IN_USE"; readonly key: ApiKey };

/**
 * Makes an operator key, with its audit row, unless one is in use by the database's clock: neither revoked nor expired. Of
 * any number at once, one makes it and the others find it: they take turns at a lock, and look in a statement after it.
 */
export async function bootstrapOperatorKey(
  sql: Sql,
  name: string,
  by: Actor,
  retentionDays?: number,
): Promise<BootstrappedKey> {
  return sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(hashtextextended('bootstrap-operator-key', 0))`;
    const [inUse] = await tx<ApiKeyRow[]>`
      select id, caller_id, kind, name, scopes, created_at, expires_at, revoked_at from api_keys
      where kind = 'OPERATOR' and revoked_at is null and (expires_at is null or expires_at > clock_timestamp())
      order by id limit 1`;
    if (inUse !== undefined) return { state: "IN_USE", key: toApiKey(inUse) };
    const operator = { name, kind: "OPERATOR", callerId: null, scopes: [], expiresAt: null } as const;
    return { state: "CREATED", key: await insertApiKey(tx, operator, by, retentionDays) };
  });
}
