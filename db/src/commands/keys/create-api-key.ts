import type { CreatedApiKey } from "@keble-scraper/contract";
import type { Sql } from "../../database.ts";
import type { Actor } from "../../steps/append-audit.ts";
import { insertApiKey, type NewApiKey } from "./insert-api-key.ts";

/**
 * Makes a key and its audit row in one transaction. The secret is in the answer and nowhere else: only its SHA-256 is
 * stored, and neither goes into the audit. `retentionDays` is the audit row's; absent, the default.
 */
export async function createApiKey(
  sql: Sql,
  key: NewApiKey,
  by: Actor,
  retentionDays?: number,
): Promise<CreatedApiKey> {
  return sql.begin((tx) => insertApiKey(tx, key, by, retentionDays));
}
