import type { StoredObject } from "./object-table.ts";
import { accept, refuse, type S3Result } from "./s3-refusal.ts";
import type { S3Request } from "./s3-request.ts";

/** S3's own limits, in bytes. */
const KEY_BYTES_MAX = 1024;
const METADATA_BYTES_MAX = 2048;

/** Headers that an object keeps, and that a read may ask to be others by `response-<name>`. */
export const KEPT_HEADERS = [
  "cache-control",
  "content-disposition",
  "content-encoding",
  "content-language",
  "content-type",
  "expires",
];

/** The metadata and headers that an object keeps from its put; refused when key or metadata are too long. */
export function readKeptHeaders(request: S3Request): S3Result<Pick<StoredObject, "metadata" | "headers">> {
  if (Buffer.byteLength(request.key) > KEY_BYTES_MAX) return refuse("KeyTooLongError");
  const metadata: Record<string, string> = {};
  let bytes = 0;
  for (const [name, value] of request.headers) {
    if (!name.startsWith("x-amz-meta-")) continue;
    const own = name.slice("x-amz-meta-".length);
    metadata[own] = value;
    bytes += Buffer.byteLength(own) + Buffer.byteLength(value);
  }
  if (bytes > METADATA_BYTES_MAX) return refuse("MetadataTooLarge");
  const kept = KEPT_HEADERS.flatMap((name) => {
    const value = request.headers.get(name);
    return value === undefined ? [] : [[name, value] as const];
  });
  return accept({ metadata, headers: Object.fromEntries(kept) });
}
