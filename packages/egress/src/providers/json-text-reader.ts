import { StageFailure } from "../transport/body-stage.ts";

/** Decodes one text of a JSON document as it streams, from behind its opening quote. */
export type JsonTextReader = {
  /** Reads `chunk` from `from` on. `at`: where it stopped, behind the closing quote when `isClosed`, else at the chunk's end. */
  read(chunk: Buffer, from: number): { readonly at: number; readonly isClosed: boolean };
  /** What was read so far, in UTF-8. */
  chunks(): readonly Buffer[];
};

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;

const REPLACEMENT = 0xfffd;
const ESCAPES: Readonly<Record<string, number>> = { b: 8, f: 12, n: 10, r: 13, t: 9, '"': 34, "\\": 92, "/": 47 };

/** A reader of a text of at most `bytesMax`: a longer one is DECODED_TOO_LARGE, and what JSON does not allow HTTP_PROTOCOL. */
export function createJsonTextReader(bytesMax: number): JsonTextReader {
  const chunks: Buffer[] = [];
  let bytes = 0;
  /** The characters of an escape that are still to come; null: in none. */
  let escape: string | null = null;
  /** A first half of a surrogate pair that waits for its second. */
  let half: number | null = null;

  /** What the next UTF-16 unit makes writable; what no UTF-8 can hold is the replacement character. */
  const toCodePoints = (unit: number): readonly number[] => {
    const high = half;
    half = null;
    if (high !== null && unit >= 0xdc00 && unit <= 0xdfff) {
      return [0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00)];
    }
    const before = high === null ? [] : [REPLACEMENT];
    if (unit >= 0xd800 && unit <= 0xdbff) {
      half = unit;
      return before;
    }
    return [...before, unit >= 0xdc00 && unit <= 0xdfff ? REPLACEMENT : unit];
  };

  return {
    read(chunk, from) {
      // An escape is longer than what it stands for; a half from the chunk before may still have to be written.
      const out = Buffer.allocUnsafe(chunk.length - from + 8);
      let length = 0;
      let at = from;
      let isClosed = false;
      const put = (codePoint: number): void => {
        length += out.write(String.fromCodePoint(codePoint), length, "utf8");
      };
      const flushHalf = (): void => {
        if (half !== null) put(REPLACEMENT);
        half = null;
      };
      while (at < chunk.length && !isClosed) {
        const byte = chunk[at] ?? 0;
        if (escape !== null) {
          escape += String.fromCharCode(byte);
          at += 1;
          const unit = readEscape(escape);
          if (unit === "MORE") continue;
          escape = null;
          for (const codePoint of toCodePoints(unit)) put(codePoint);
        } else if (byte === BACKSLASH) {
          escape = "";
          at += 1;
        } else {
          flushHalf();
          isClosed = byte === QUOTE;
          const end = isClosed ? at : plainEnd(chunk, at);
          length += chunk.copy(out, length, at, end);
          at = isClosed ? at + 1 : end;
        }
      }
      bytes += length;
      if (bytes > bytesMax) throw new StageFailure("DECODED_TOO_LARGE");
      // A text that shrank much would keep all of its chunk's memory.
      if (length > 0)
        chunks.push(length * 2 > out.length ? out.subarray(0, length) : Buffer.from(out.subarray(0, length)));
      return { at, isClosed };
    },
    chunks: () => chunks,
  };
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
