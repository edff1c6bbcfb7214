import { fileTypeFromBuffer } from "file-type";
import { computedMIMEType } from "whatwg-mimetype";
import { readMediaType } from "./media-type.ts";

/**
 * Bytes from the start of a body that sniffing reads. Enough for all of it: WHATWG's tables end at 1,445 bytes, the search
 * for a charset in HTML at 1,024, and nearly all file signatures (tar's at 257 the farthest common one) lie before.
 */
export const SNIFF_BYTES_MAX = 4_096;

/**
 * What the first bytes of a body are, as a media type without parameters; `null` for an empty body. `declared` is the
 * Content-Type as sent, or null: it decides only between types that look alike as bytes (kinds of text and of XML).
 * Never throws, whatever the bytes are.
 */
export async function sniffType(firstBytes: Uint8Array, declared: string | null): Promise<string | null> {
  const bytes = firstBytes.subarray(0, SNIFF_BYTES_MAX);
  if (bytes.length === 0) return null;
  const { essence: generic } = computedMIMEType(bytes);
  const claimed = readMediaType(declared)?.essence ?? null;
  if (generic === "text/html") return claimed === "application/xhtml+xml" ? claimed : generic;
  const specific = await findSignature(bytes);
  if (generic === "text/xml" || specific === "application/xml") return sniffXml(bytes, claimed);
  if (specific !== null) return specific;
  return generic === "text/plain" && claimed !== null && isText(claimed) ? claimed : generic;
}

async function findSignature(bytes: Uint8Array): Promise<string | null> {
  try {
    return (await fileTypeFromBuffer(bytes))?.mime ?? null;
  } catch {
    // A signature whose container is cut off or broken: there is nothing more specific to say.
    return null;
  }
}

function sniffXml(bytes: Uint8Array, claimed: string | null): string {
  if (claimed !== null && isXml(claimed)) return claimed;
  // A page may begin with an XML declaration and still be served, and meant, as HTML.
  const isPage = /<(?:!doctype\s+html|html)[\s>]/i.test(Buffer.from(bytes).toString("latin1"));
  return isPage ? (claimed === "text/html" ? claimed : "application/xhtml+xml") : "application/xml";
}

/** Whether a media type without parameters is XML. */
export function isXml(essence: string): boolean {
  return essence === "text/xml" || essence === "application/xml" || essence.endsWith("+xml");
}

const TEXT = /^(?:text\/.*|application\/(?:.*\+)?(?:json|javascript|ecmascript|yaml|x-ndjson|x-www-form-urlencoded))$/;

function isText(essence: string): boolean {
  return TEXT.test(essence);
}
