import { sql } from "drizzle-orm";
import { check, pgTable, text, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import { bytes, time } from "./columns.ts";

/** API keys. Only the SHA-256 of a key is kept; a service key belongs to one caller, an operator key to none. */
export const apiKeys = pgTable(
  "api_keys",
  {
    id: uuid("id").primaryKey(),
    callerId: text("caller_id"),
    kind: text("kind").notNull().$type<"SERVICE" | "OPERATOR">(),
    keySha256: bytes("key_sha256").notNull(),
    name: text("name").notNull(),
    scopes: text("scopes").array().notNull(),
    createdAt: time("created_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    expiresAt: time("expires_at"),
    revokedAt: time("revoked_at"),
  },
  (table) => [
    // findApiKeyByHash
    uniqueIndex("api_keys_key_sha256").on(table.keySha256),
    check("api_keys_kind", sql`${table.kind} in ('SERVICE', 'OPERATOR')`),
    check("api_keys_caller", sql`(${table.kind} = 'SERVICE') = (${table.callerId} is not null)`),
  ],
);
