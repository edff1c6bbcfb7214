import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";

/**
 * What a signed download link says. `path` is absolute and already percent-encoded; `expiresAtMs` is Unix milliseconds;
 * `contentType` and `disposition` are the headers to answer with, visible ASCII.
 */
export type DownloadClaims = {
  readonly path: string;
  readonly auditId: string;
  readonly expiresAtMs: number;
  readonly contentType: string;
  readonly disposition: string;
};

/**
 * What a request target is worth: its claims; MALFORMED or BAD_SIGNATURE when we never made it as it stands; EXPIRED
 * when we did, but its time is over.
 */
export type VerifiedDownload =
  | { readonly ok: true; readonly claims: DownloadClaims }
  | { readonly ok: false; readonly reason: "MALFORMED" | "BAD_SIGNATURE" | "EXPIRED" };

const PARAMETERS = {
  auditId: "x-keble-audit-id",
  expiresAtMs: "x-keble-expires",
  contentType: "x-keble-content-type",
  disposition: "x-keble-disposition",
} as const;
const SIGNATURE = "x-keble-signature";
/** A link of ours is under 1 KiB; anything longer is not worth parsing. */
const TARGET_CHARS_MAX = 4096;
const KEY_LABEL = "keble-scraper local download v1";

/** The signing key of local downloads, from the deployment's secret; of no use for anything else. 32 bytes. */
export function deriveDownloadKey(secret: Uint8Array | string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, "", KEY_LABEL, 32));
}

/**
 * A link to `claims.path` below `baseUrl` (scheme, host, port; its path, if any, is put before). The signature covers
 * the method GET (and with it HEAD), the whole path and every parameter. Makes no request and keeps nothing.
 */
export function signDownloadUrl(baseUrl: string, key: Uint8Array, claims: DownloadClaims): string {
  const base = new URL(baseUrl);
  const path = base.pathname.replace(/\/+$/, "") + claims.path;
  return base.origin + signedTarget(key, { ...claims, path });
}

/**
 * Checks a request target (path and query as they came) against the key and the time (`nowMs`, Unix milliseconds). The
 * target must be, character for character, one that `signDownloadUrl` made: a parameter that is changed, moved, doubled,
 * added, removed or spelled otherwise is refused.
 */
export function verifyDownloadUrl(key: Uint8Array, target: string, nowMs: number): VerifiedDownload {
  if (target.length > TARGET_CHARS_MAX) return { ok: false, reason: "MALFORMED" };
  const [path, query, ...rest] = target.split("?");
  if (path === undefined || query === undefined || rest.length > 0) return { ok: false, reason: "MALFORMED" };
  const parameters = new URLSearchParams(query);
  const expires = parameters.get(PARAMETERS.expiresAtMs) ?? "";
  if (!/^[1-9][0-9]{0,14}$/.test(expires)) return { ok: false, reason: "MALFORMED" };
  const claims: DownloadClaims = {
    path,
    auditId: parameters.get(PARAMETERS.auditId) ?? "",
    expiresAtMs: Number(expires),
    contentType: parameters.get(PARAMETERS.contentType) ?? "",
    disposition: parameters.get(PARAMETERS.disposition) ?? "",
  };
  if (!isSame(target, signedTarget(key, claims))) return { ok: false, reason: "BAD_SIGNATURE" };
  return nowMs < claims.expiresAtMs ? { ok: true, claims } : { ok: false, reason: "EXPIRED" };
}

function signedTarget(key: Uint8Array, claims: DownloadClaims): string {
  const query = [
    [PARAMETERS.auditId, claims.auditId],
    [PARAMETERS.expiresAtMs, String(claims.expiresAtMs)],
    [PARAMETERS.contentType, claims.contentType],
    [PARAMETERS.disposition, claims.disposition],
  ]
    .map(([name, value]) => `${name ?? ""}=${encodeStrictly(value ?? "")}`)
    .join("&");
  // The encoded query has no line feed, and a path of ours neither: the text can be read in one way only.
  const text = `GET\n${claims.path}\n${query}`;
  const signature = createHmac("sha256", key).update(text).digest("base64url");
  return `${claims.path}?${query}&${SIGNATURE}=${signature}`;
}

/** Leaves only RFC 3986's unreserved characters: a URL parser in between would rewrite an apostrophe (WHATWG URL). */
function encodeStrictly(value: string): string {
  return encodeURIComponent(value).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Compares the whole target in constant time; the length of a link is no secret. */
function isSame(left: string, right: string): boolean {
  const [a, b] = [Buffer.from(left), Buffer.from(right)];
  return a.byteLength === b.byteLength && timingSafeEqual(a, b);
}
