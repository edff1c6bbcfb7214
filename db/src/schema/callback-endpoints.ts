import { sql } from "drizzle-orm";
import { check, index, integer, pgTable, smallint, text, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import { bytes, time } from "./columns.ts";

/** Where a caller's outcomes are posted. Deleted rows stay, because jobs and events refer to them. */
export const callbackEndpoints = pgTable(
  "callback_endpoints",
  {
    id: uuid("id").primaryKey(),
    callerId: text("caller_id").notNull(),
    name: text("name").notNull(),
    url: text("url").notNull(),
    /** The event types it wants; null means all. */
    events: text("events").array(),
    attemptBudget: smallint("attempt_budget").notNull(),
    timeoutMs: integer("timeout_ms").notNull(),
    maxConcurrency: smallint("max_concurrency").notNull(),
    disabledReason: text("disabled_reason"),
    createdAt: time("created_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    updatedAt: time("updated_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    disabledAt: time("disabled_at"),
    deletedAt: time("deleted_at"),
  },
  (table) => [
    // submitJobs resolves a name; a deleted name is free again
    uniqueIndex("callback_endpoints_name")
      .on(table.callerId, table.name)
      .where(sql`deleted_at is null`),
    // listEndpoints of a caller
    index("callback_endpoints_caller").on(table.callerId, table.id),
    check("callback_endpoints_disabled", sql`(${table.disabledAt} is null) = (${table.disabledReason} is null)`),
    check("callback_endpoints_reason", sql`${table.disabledReason} in ('OPERATOR', 'CALLER', 'GONE')`),
  ],
);

/** Signing secrets, encrypted (AES-256-GCM) with the key that `key_id` names. An endpoint may have several live ones. */
export const callbackSecrets = pgTable(
  "callback_secrets",
  {
    id: uuid("id").primaryKey(),
    endpointId: uuid("endpoint_id")
      .notNull()
      .references(() => callbackEndpoints.id),
    keyId: text("key_id").notNull(),
    ciphertext: bytes("ciphertext").notNull(),
    createdAt: time("created_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    expiresAt: time("expires_at"),
  },
  // claimDeliveries reads the live secrets
  (table) => [index("callback_secrets_endpoint").on(table.endpointId)],
);
