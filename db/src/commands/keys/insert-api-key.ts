import { createHash, randomBytes } from "node:crypto";
import type { CreatedApiKey, PrincipalKind, Scope } from "@keble-scraper/contract";
import { v7 as uuidv7 } from "uuid";
import type { Tx } from "../../database.ts";
import { type ApiKeyRow, toApiKey } from "../../queries/api-key-row.ts";
import { type Actor, appendAudit } from "../../steps/append-audit.ts";

/** A key to make. A SERVICE key has a caller, an OPERATOR key none. `expiresAt` null: it does not expire. */
export type NewApiKey = {
  readonly name: string;
  readonly kind: PrincipalKind;
  readonly callerId: string | null;
  readonly scopes: readonly Scope[];
  readonly expiresAt: Date | null;
};

/** What every key begins with, so that a secret scanner and a person can tell it. */
const SECRET_PREFIX = "ks_live_";
/** 256 bits of randomness: a plain hash of it can't be searched. */
const SECRET_BYTES = 32;

/** Writes a key and its audit row in the transaction `tx`. The secret is in the answer and nowhere else. */
export async function insertApiKey(
  tx: Tx,
  key: NewApiKey,
  by: Actor,
  retentionDays: number | undefined,
): Promise<CreatedApiKey> {
  const id = uuidv7();
  const secret = SECRET_PREFIX + randomBytes(SECRET_BYTES).toString("base64url");
  // Neither Postgres nor RFC 3339 writes every date that JavaScript reads; before 1970 is as expired as 1970.
  const expiresAtMs = key.expiresAt === null ? null : Math.max(0, key.expiresAt.getTime());
  const [row] = await tx<[ApiKeyRow]>`
    insert into api_keys (id, caller_id, kind, key_sha256, name, scopes, expires_at)
    values (${id}, ${key.callerId}, ${key.kind}, ${hashApiKey(secret)}, ${key.name}, ${[...key.scopes]}::text[],
            to_timestamp(${expiresAtMs}::float8 / 1000))
    returning id, caller_id, kind, name, scopes, created_at, expires_at, revoked_at`;
  await appendAudit(
    tx,
    {
      action: "api-key.created",
      by,
      callerId: key.callerId,
      subject: `api-key:${id}`,
      details: {
        name: key.name,
        kind: key.kind,
        scopes: key.scopes.join(" "),
        expiresAt: row.expires_at?.toISOString() ?? null,
      },
    },
    retentionDays,
  );
  return { ...toApiKey(row), secret };
}

/** The form in which a key is stored and looked up: the SHA-256 of its text, 32 bytes. */
export function hashApiKey(secret: string): Buffer {
  return createHash("sha256").update(secret, "utf8").digest();
}
