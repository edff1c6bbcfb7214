import type { Principal, PrincipalKind, Scope } from "@keble-scraper/contract";
import type { Tx } from "../database.ts";

/** A live key. `expiresInMs` bounds how long it may be remembered; null: it does not expire. */
export type LiveApiKey = { readonly principal: Principal; readonly expiresInMs: number | null };

/** The principal of a key's SHA-256. Null when there is none, when it was revoked, and when it expired. */
export async function findApiKeyByHash(sql: Tx, keySha256: Buffer): Promise<LiveApiKey | null> {
  const [row] = await sql<LiveRow[]>`
    select id, caller_id, kind, scopes, extract(epoch from expires_at - clock_timestamp())::float8 * 1000 as expires_in_ms
    from api_keys
    where key_sha256 = ${keySha256} and revoked_at is null and (expires_at is null or expires_at > clock_timestamp())`;
  if (row === undefined) return null;
  return {
    principal: { keyId: row.id, kind: row.kind, callerId: row.caller_id, scopes: row.scopes },
    expiresInMs: row.expires_in_ms,
  };
}

type LiveRow = {
  id: string;
  caller_id: string | null;
  kind: PrincipalKind;
  scopes: Scope[];
  expires_in_ms: number | null;
};
