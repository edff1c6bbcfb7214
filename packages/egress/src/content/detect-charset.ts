import { analyse } from "chardet";
import { LRUCache } from "lru-cache";
import htmlEncodingSniffer from "html-encoding-sniffer";
import { type MediaType, readMediaType } from "./media-type.ts";
import { isXml, SNIFF_BYTES_MAX } from "./sniff-type.ts";

/**
 * - `declared`: the Content-Type header's label as written, in lower case; null when it says nothing.
 * - `detected`: the Encoding standard's name, in lower case, of the encoding to read the body with; null when it is no text, or cannot be told.
 */
export type Charset = { readonly declared: string | null; readonly detected: string | null };

/** Of 0 to 100. Tried: right guesses on short pages scored from 29 up, noise 10. */
const CONFIDENCE_MIN = 20;
const LABEL_CHARS_MAX = 64;

/**
 * Tells a body's encoding from its first bytes and its Content-Type: byte order mark, then header, then what the document
 * says of itself, then well-formed UTF-8, then statistics. Never throws, whatever the bytes are.
 */
export function detectCharset(firstBytes: Uint8Array, declaredContentType: string | null): Charset {
  const bytes = firstBytes.subarray(0, SNIFF_BYTES_MAX);
  const mediaType = readMediaType(declaredContentType);
  const label = mediaType?.charset ?? null;
  const declared = label === null || label === "" ? null : label.trim().toLowerCase().slice(0, LABEL_CHARS_MAX);
  const mark = readMark(bytes);
  if (mark !== null) return { declared, detected: mark };
  const known = declared !== null && isKnown(declared) ? nameOf(declared) : null;
  const isText = bytes.length > 0 && (!isBinary(bytes) || known?.startsWith("utf-16") === true);
  return { declared, detected: isText ? (known ?? readDocument(bytes, mediaType) ?? guess(bytes)) : null };
}

function readMark(bytes: Uint8Array): string | null {
  const [first, second, third] = bytes;
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  return first === 0xff && second === 0xfe ? "utf-16le" : null;
}

function readDocument(bytes: Uint8Array, mediaType: MediaType | null): string | null {
  if (mediaType !== null && isXml(mediaType.essence)) return readXmlDeclaration(bytes);
  if (mediaType !== null && mediaType.essence !== "text/html") return null;
  try {
    const name = htmlEncodingSniffer(bytes, { defaultEncoding: null });
    return name === null ? readXmlDeclaration(bytes) : nameOf(name);
  } catch {
    // The library reads past the end of `<meta content="charset">`: such a page declares nothing.
    return readXmlDeclaration(bytes);
  }
}

function readXmlDeclaration(bytes: Uint8Array): string | null {
  const head = Buffer.from(bytes.subarray(0, 256)).toString("latin1");
  const label = /^<\?xml\s[^>]*?\bencoding\s*=\s*["']([A-Za-z0-9._:-]+)["']/.exec(head)?.[1];
  const name = label === undefined ? null : nameOf(label);
  return name !== null && isKnown(name) ? name : null;
}

function guess(bytes: Uint8Array): string | null {
  if (isUtf8(bytes)) return "utf-8";
  const [best] = analyse(bytes);
  return best !== undefined && best.confidence >= CONFIDENCE_MIN ? nameOf(best.name) : null;
}

/** Bytes that no text has: WHATWG's binary data bytes; ESC is left to ISO-2022. */
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const BINARY_BYTES = /[\0-\u0008\u000b\u000e-\u001a\u001c-\u001f]/;

/** Whether there is one of them. A regular expression over latin1 takes a tenth of a loop over the bytes. */
function isBinary(bytes: Uint8Array): boolean {
  return BINARY_BYTES.test(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1"));
}

/** Whether bytes are UTF-8, ASCII included; the last character may be cut off. */
function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}

function nameOf(label: string): string {
  const text = label.trim().toLowerCase().slice(0, LABEL_CHARS_MAX);
  return encodingOf(text) ?? text;
}

function isKnown(label: string): boolean {
  return encodingOf(label) !== null;
}

/** A decoder is dear to make, and only its name is wanted; a label always has the same one. */
const ENCODINGS = new LRUCache<string, { readonly name: string | null }>({ max: 512 });

/** The Encoding standard's name of a label; null when it knows none, or this Node has none. */
function encodingOf(label: string): string | null {
  const known = ENCODINGS.get(label);
  if (known !== undefined) return known.name;
  const name = readEncoding(label);
  ENCODINGS.set(label, { name });
  return name;
}

function readEncoding(label: string): string | null {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return null;
  }
}
