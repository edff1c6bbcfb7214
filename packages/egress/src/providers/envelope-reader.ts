import { type BodyStage, StageFailure } from "../transport/body-stage.ts";
import { BACKSLASH, createJsonTextReader, type JsonTextReader, QUOTE } from "./json-text-reader.ts";

/**
 * Reads a JSON envelope as it streams: the text of its top-level `result`, when that is a string, is decoded into chunks
 * and left out of `skeleton`, the rest. Parsed in one piece, a page would be in memory several times over.
 */
export type EnvelopeReader = BodyStage & {
  /** The envelope's JSON with an empty text for the result; not judged, and at most `SKELETON_BYTES_MAX`. */
  skeleton(): string;
  /** The result's text in UTF-8; null when the envelope had none. */
  result(): readonly Buffer[] | null;
};

/** Errors, messages and meta take a few hundred bytes. */
const SKELETON_BYTES_MAX = 64 * 1024;

/**
 * A reader that takes a result of at most `resultBytesMax`: a longer one is DECODED_TOO_LARGE. What is no JSON on the way
 * is HTTP_PROTOCOL; what is none only in the end shows when the skeleton is parsed.
 */
export function createEnvelopeReader(resultBytesMax: number): EnvelopeReader {
  const skeleton: Buffer[] = [];
  let skeletonBytes = 0;
  let result: JsonTextReader | null = null;
  let depth = 0;
  let where: "OUTSIDE" | "TEXT" | "RESULT" = "OUTSIDE";
  let isEscaped = false;
  /** The text that was read last at depth 1: a key, once a colon follows. */
  let key = "";
  let isKey = false;
  let isValueOfResult = false;

  const keep = (bytes: Buffer): void => {
    if (bytes.length === 0) return;
    skeletonBytes += bytes.length;
    if (skeletonBytes > SKELETON_BYTES_MAX) throw new StageFailure("HTTP_PROTOCOL");
    skeleton.push(Buffer.from(bytes));
  };

  const beginText = (): void => {
    if (depth === 1 && isValueOfResult) {
      // A second one would leave open which of them counts.
      if (result !== null) throw new StageFailure("HTTP_PROTOCOL");
      result = createJsonTextReader(resultBytesMax);
      where = "RESULT";
    } else {
      where = "TEXT";
      key = "";
      isKey = depth === 1;
    }
    isValueOfResult = false;
  };

  const readOutside = (byte: number): void => {
    switch (byte) {
      case QUOTE:
        beginText();
        return;
      case 0x7b: // {
      case 0x5b: // [
        depth += 1;
        isValueOfResult = false;
        return;
      case 0x7d: // }
      case 0x5d: // ]
        depth -= 1;
        return;
      case 0x3a: // :
        isValueOfResult = depth === 1 && isResultKey(key);
        return;
      case 0x20:
      case 0x09:
      case 0x0a:
      case 0x0d:
        return;
      default:
        isValueOfResult = false;
    }
  };

  const readText = (byte: number): void => {
    if (isEscaped) isEscaped = false;
    else if (byte === BACKSLASH) isEscaped = true;
    else if (byte === QUOTE) {
      where = "OUTSIDE";
      return;
    }
    if (isKey && key.length < KEY_CHARS_MAX) key += String.fromCharCode(byte);
  };

  /** Reads one piece of the chunk, and answers where it ends: a byte, or as much of the result as there is. */
  const step = (chunk: Buffer, at: number): { readonly at: number; readonly isKept: boolean } => {
    if (where === "RESULT" && result !== null) {
      const read = result.read(chunk, at);
      if (read.isClosed) where = "OUTSIDE";
      return { at: read.at, isKept: false };
    }
    const byte = chunk[at] ?? 0;
    if (where === "TEXT") readText(byte);
    else readOutside(byte);
    return { at: at + 1, isKept: true };
  };

  return {
    write(chunk) {
      let at = 0;
      let keptTo = 0;
      while (at < chunk.length) {
        const next = step(chunk, at);
        if (!next.isKept) {
          keep(chunk.subarray(keptTo, at));
          // The quote that ended it stays in the skeleton.
          keptTo = where === "RESULT" ? next.at : next.at - 1;
        }
        ({ at } = next);
      }
      keep(chunk.subarray(keptTo, at));
    },
    end() {},
    abandon() {
      result = null;
      skeleton.length = 0;
    },
    skeleton: () => Buffer.concat(skeleton).toString("utf8"),
    result: () => result?.chunks() ?? null,
  };
}

const KEY_CHARS_MAX = 64;

/** A key may be written with escapes. */
function isResultKey(raw: string): boolean {
  if (raw === "result") return true;
  if (!raw.includes("\\")) return false;
  try {
    return JSON.parse(`"${raw}"`) === "result";
  } catch {
    return false;
  }
}
