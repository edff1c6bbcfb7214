import { type ApiKey, formatTime, type PrincipalKind, type Scope } from "@keble-scraper/contract";

/** A row of `api_keys` without the hash. */
export type ApiKeyRow = {
  readonly id: string;
  readonly caller_id: string | null;
  readonly kind: PrincipalKind;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly created_at: Date;
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
};

/** A key as it is read. */
export function toApiKey(row: ApiKeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    kind: row.kind,
    callerId: row.caller_id,
    scopes: row.scopes as Scope[],
    createdAt: formatTime(row.created_at),
    expiresAt: row.expires_at === null ? null : formatTime(row.expires_at),
    revokedAt: row.revoked_at === null ? null : formatTime(row.revoked_at),
  };
}
