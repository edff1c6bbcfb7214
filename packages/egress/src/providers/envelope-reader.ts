import { type BodyStage, StageFailure } from "../transport/body-stage.ts";

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

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const REPLACEMENT = 0xfffd;
const ESCAPES: Readonly<Record<string, number>> = { b: 8, f: 12, n: 10, r: 13, t: 9, '"': 34, "\\": 92, "/": 47 };

/**
 * A reader that takes a result of at most `resultBytesMax`: a longer one is DECODED_TOO_LARGE. What is no JSON on the way
 * is HTTP_PROTOCOL; what is none only in the end shows when the skeleton is parsed.
 */
export function createEnvelopeReader(resultBytesMax: number): EnvelopeReader {
  const skeleton: Buffer[] = [];
  let skeletonBytes = 0;
  let chunks: Buffer[] | null = null;
  let resultBytes = 0;
  let depth = 0;
  let where: "OUTSIDE" | "TEXT" | "RESULT" = "OUTSIDE";
  let isEscaped = false;
  /** The text that was read last at depth 1: a key, once a colon follows. */
  let key = "";
  let isKey = false;
  let isValueOfResult = false;
  /** The characters of an escape inside the result that are still to come; null: in none. */
  let escape: string | null = null;
  /** A first half of a surrogate pair that waits for its second. */
  let half: number | null = null;

  const keep = (bytes: Buffer): void => {
    skeletonBytes += bytes.length;
    if (skeletonBytes > SKELETON_BYTES_MAX) throw new StageFailure("HTTP_PROTOCOL");
    skeleton.push(Buffer.from(bytes));
  };

  const outside = (byte: number): void => {
    switch (byte) {
      case QUOTE:
        if (depth === 1 && isValueOfResult) {
          // A second one would leave open which of them counts.
          if (chunks !== null) throw new StageFailure("HTTP_PROTOCOL");
          chunks = [];
          where = "RESULT";
        } else {
          where = "TEXT";
          key = "";
          isKey = depth === 1;
        }
        isValueOfResult = false;
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

  const text = (byte: number): void => {
    if (isEscaped) isEscaped = false;
    else if (byte === BACKSLASH) isEscaped = true;
    else if (byte === QUOTE) {
      where = "OUTSIDE";
      return;
    }
    if (isKey && key.length < KEY_CHARS_MAX) key += String.fromCharCode(byte);
  };

  /** Reads the result's text from `at` on; answers where it stopped. */
  const readResult = (chunk: Buffer, from: number): number => {
    // An escape is longer than what it stands for; a half from the chunk before may still have to be written.
    const out = Buffer.allocUnsafe(chunk.length - from + 8);
    let length = 0;
    const put = (codePoint: number): void => {
      length += out.write(String.fromCodePoint(codePoint), length, "utf8");
    };
    const flushHalf = (): void => {
      if (half === null) return;
      half = null;
      put(REPLACEMENT);
    };
    const putUnit = (unit: number): void => {
      if (half !== null && unit >= 0xdc00 && unit <= 0xdfff) {
        const high = half;
        half = null;
        put(0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00));
        return;
      }
      flushHalf();
      if (unit >= 0xd800 && unit <= 0xdbff) half = unit;
      else put(unit >= 0xdc00 && unit <= 0xdfff ? REPLACEMENT : unit);
    };
    let at = from;
    while (at < chunk.length && where === "RESULT") {
      const byte = chunk[at] ?? 0;
      if (escape !== null) {
        escape += String.fromCharCode(byte);
        at += 1;
        const unit = readEscape(escape);
        if (unit === "MORE") continue;
        escape = null;
        putUnit(unit);
      } else if (byte === BACKSLASH) {
        escape = "";
        at += 1;
      } else if (byte === QUOTE) {
        flushHalf();
        where = "OUTSIDE";
        at += 1;
      } else {
        flushHalf();
        const end = plainEnd(chunk, at);
        length += chunk.copy(out, length, at, end);
        at = end;
      }
    }
    resultBytes += length;
    if (resultBytes > resultBytesMax) throw new StageFailure("DECODED_TOO_LARGE");
    if (length > 0)
      chunks?.push(length * 2 > out.length ? out.subarray(0, length) : Buffer.from(out.subarray(0, length)));
    return at;
  };

  return {
    write(chunk) {
      let at = 0;
      let keptTo = 0;
      while (at < chunk.length) {
        if (where === "RESULT") {
          at = readResult(chunk, at);
          // The quote that ended it stays in the skeleton.
          keptTo = (where as string) === "RESULT" ? at : at - 1;
          continue;
        }
        if (where === "TEXT") text(chunk[at] ?? 0);
        else outside(chunk[at] ?? 0);
        at += 1;
        if ((where as string) === "RESULT") keep(chunk.subarray(keptTo, at));
      }
      if (where !== "RESULT") keep(chunk.subarray(keptTo, at));
    },
    end() {},
    abandon() {
      chunks = null;
      skeleton.length = 0;
    },
    skeleton: () => Buffer.concat(skeleton).toString("utf8"),
    result: () => chunks,
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

/** The UTF-16 unit that an escape (behind its backslash) stands for. */
function readEscape(escape: string): number | "MORE" {
  if (escape.startsWith("u")) {
    if (!/^u[0-9a-f]{0,4}$/iu.test(escape)) throw new StageFailure("HTTP_PROTOCOL");
    return escape.length < 5 ? "MORE" : Number.parseInt(escape.slice(1), 16);
  }
  const unit = ESCAPES[escape];
  if (unit === undefined) throw new StageFailure("HTTP_PROTOCOL");
  return unit;
}

/** Where the plain bytes from `at` on end: at a quote, a backslash, or the chunk's end. Control characters are no JSON. */
function plainEnd(chunk: Buffer, at: number): number {
  let end = at;
  for (; end < chunk.length; end += 1) {
    const byte = chunk[end] ?? 0;
    if (byte === QUOTE || byte === BACKSLASH) break;
    if (byte < 0x20) throw new StageFailure("HTTP_PROTOCOL");
  }
  return end;
}
