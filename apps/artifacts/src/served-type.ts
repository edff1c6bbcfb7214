/**
 * Types that no browser runs or renders with script, served as they are. Everything else, HTML, SVG, XML, script, MHTML
 * and what we don't know, is served as plain octets: a stored page must never run in our origin.
 */
const INERT_TYPES: ReadonlySet<string> = new Set([
  "application/gzip",
  "application/json",
  "application/pdf",
  "application/x-ndjson",
  "application/zip",
  "audio/mpeg",
  "audio/ogg",
  "audio/wav",
  "font/woff",
  "font/woff2",
  "image/avif",
  "image/gif",
  "image/jpeg",
  "image/png",
  "image/webp",
  "text/csv",
  "text/plain",
  "video/mp4",
  "video/webm",
]);

const TEXT_TYPES: ReadonlySet<string> = new Set(["text/csv", "text/plain"]);
const OCTETS = "application/octet-stream";
/** A declared type is the target's text: up to 16 KiB of anything. More than this is not a type. */
const DECLARED_CHARS_MAX = 256;

/** The `Content-Type` a download is served with. Only names of the list above come out, never a part of what was declared but a charset. */
export function toServedType(declared: string | null): string {
  if (declared === null || declared.length > DECLARED_CHARS_MAX) return OCTETS;
  const [type = "", ...parameters] = declared.split(";").map((part) => part.trim().toLowerCase());
  if (!INERT_TYPES.has(type)) return OCTETS;
  if (!TEXT_TYPES.has(type)) return type;
  const charset = parameters.map((parameter) => /^charset="?([a-z0-9_-]{1,40})"?$/.exec(parameter)?.[1]).find(Boolean);
  return charset === undefined ? type : `${type}; charset=${charset}`;
}
