import type { ApiKey, Page } from "@keble-scraper/contract";
import { desc, lt } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { apiKeys } from "../schema/api-keys.ts";
import { toApiKey } from "./api-key-row.ts";
import { encodeCursor } from "./cursor.ts";

/** A page of keys, newest first, revoked and expired ones included. `afterId` is the last id of the page before. */
export async function listApiKeys(
  reads: PostgresJsDatabase,
  query: { readonly limit: number; readonly afterId: string | null },
): Promise<Page<ApiKey>> {
  const rows = await reads
    .select({
      id: apiKeys.id,
      caller_id: apiKeys.callerId,
      kind: apiKeys.kind,
      name: apiKeys.name,
      scopes: apiKeys.scopes,
      created_at: apiKeys.createdAt,
      expires_at: apiKeys.expiresAt,
      revoked_at: apiKeys.revokedAt,
    })
    .from(apiKeys)
    .where(query.afterId === null ? undefined : lt(apiKeys.id, query.afterId))
    .orderBy(desc(apiKeys.id))
    .limit(query.limit + 1);
  const items = rows.slice(0, query.limit).map(toApiKey);
  const last = items.at(-1);
  return { items, nextCursor: rows.length > query.limit && last !== undefined ? encodeCursor(last.id) : null };
}
