import type { OutgoingHttpHeaders } from "node:http";

/** On every answer of the download server, errors included: whatever it holds, no browser runs or frames it. */
export const SAFETY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": "sandbox; default-src 'none'",
  "cross-origin-resource-policy": "same-site",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/**
 * The headers that tell of the stored bytes. They never change under their URL, so a caller's own cache may keep them for
 * as long as the URL holds; a shared one may not, since the URL is the caller's.
 */
export function toObjectHeaders(object: {
  readonly sha256: string;
  readonly contentType: string;
  readonly disposition: string;
  readonly remainingMs: number;
}): OutgoingHttpHeaders {
  const maxAgeSeconds = Math.max(0, Math.floor(object.remainingMs / 1000));
  return {
    "accept-ranges": "bytes",
    "cache-control": `private, max-age=${String(maxAgeSeconds)}, immutable`,
    "content-disposition": object.disposition,
    "content-type": object.contentType,
    etag: `"${object.sha256}"`,
  };
}
