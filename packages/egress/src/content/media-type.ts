import { LRUCache } from "lru-cache";
import { MIMEType } from "whatwg-mimetype";

/** A Content-Type as WHATWG reads it: lower case, without parameters; `charset` as it was written. */
export type MediaType = { readonly essence: string; readonly type: string; readonly charset: string | null };

/** Header values longer than this say nothing that we want to know. */
const CONTENT_TYPE_CHARS_MAX = 1_024;

/** Sites write few different ones, and each response's is read several times. Reading is pure, so what was read stays true. */
const READ = new LRUCache<string, { readonly mediaType: MediaType | null }>({ max: 512 });

/** Reads a Content-Type header value; `null` when it is absent or none. */
export function readMediaType(contentType: string | null): MediaType | null {
  if (contentType === null || contentType.length > CONTENT_TYPE_CHARS_MAX) return null;
  const known = READ.get(contentType);
  if (known !== undefined) return known.mediaType;
  const mediaType = parse(contentType);
  READ.set(contentType, { mediaType });
  return mediaType;
}

function parse(contentType: string): MediaType | null {
  const parsed = MIMEType.parse(contentType);
  if (parsed === null) return null;
  return { essence: parsed.essence, type: parsed.type, charset: parsed.parameters.get("charset") ?? null };
}

/**
 * Whether a response may be read when a job wants `list` (media types or `type/*`, any letter case; empty means any). A
 * response that declares nothing may: only another declared type is refused. A declaration that is no media type is
 * another one.
 */
export function matchesContentTypes(declared: string | null, list: readonly string[]): boolean {
  if (list.length === 0 || declared === null || declared.trim() === "") return true;
  const mediaType = readMediaType(declared);
  if (mediaType === null) return false;
  return list.some((entry) => {
    const wanted = entry.trim().toLowerCase();
    return wanted === mediaType.essence || wanted === `${mediaType.type}/*` || wanted === "*/*";
  });
}
