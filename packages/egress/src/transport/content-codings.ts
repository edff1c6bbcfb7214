import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";
import { type BodyStage, StageFailure } from "./body-stage.ts";
import { codeOf } from "./classify-error.ts";

const CODINGS = ["gzip", "br", "deflate"] as const;
export type ContentCoding = (typeof CODINGS)[number];

/**
 * The codings of a Content-Encoding header in the order they were applied; `identity` and empty members are nothing. Null
 * for an unknown coding or more than `codingsMax`.
 */
export function parseContentCodings(values: readonly string[], codingsMax: number): readonly ContentCoding[] | null {
  const codings: ContentCoding[] = [];
  for (const token of values.join(",").split(",")) {
    const name = token.trim().toLowerCase();
    if (name === "" || name === "identity") continue;
    const coding = name === "x-gzip" ? "gzip" : CODINGS.find((known) => known === name);
    if (coding === undefined || codings.length === codingsMax) return null;
    codings.push(coding);
  }
  return codings;
}

/**
 * A chain that undoes `codings`, last applied first, and feeds `last`. The output of every stage but the last is capped at
 * `stageBytesMax`, the last one's by `last` itself: a small body may unpack into a medium one that unpacks into a huge one.
 */
export function createDecoders(codings: readonly ContentCoding[], last: BodyStage, stageBytesMax: number): BodyStage {
  return codings.reduce(
    (next, coding, index) => createDecoder(coding, index === 0 ? next : capped(next, stageBytesMax)),
    last,
  );
}

function capped(next: BodyStage, bytesMax: number): BodyStage {
  let total = 0;
  return {
    write(chunk) {
      total += chunk.length;
      if (total > bytesMax) throw new StageFailure("DECODED_TOO_LARGE");
      return next.write(chunk);
    },
    end: () => next.end(),
    abandon() {
      next.abandon();
    },
  };
}

function createDecoder(coding: ContentCoding, next: BodyStage): BodyStage {
  let running: { readonly stream: Transform; readonly drained: Promise<void> } | undefined;
  return {
    async write(chunk) {
      if (chunk.length === 0) return;
      running ??= start(createStream(coding, chunk), next);
      const { stream, drained } = running;
      const taken = new Promise<void>((resolve, reject) => {
        stream.write(chunk, (error) => {
          if (error == null) resolve();
          else reject(error);
        });
      });
      // When both fail, the drain knows why: a write to a stream that it ended fails only as a consequence.
      await Promise.race([taken.catch(() => drained), drained]);
    },
    async end() {
      // No byte at all is an empty body, whatever the coding; zlib would call it cut.
      if (running !== undefined) {
        running.stream.end();
        await running.drained;
      }
      await next.end();
    },
    abandon() {
      running?.stream.destroy();
      next.abandon();
    },
  };
}

function start(stream: Transform, next: BodyStage): { readonly stream: Transform; readonly drained: Promise<void> } {
  const drained = drain(stream, next);
  drained.catch(() => {});
  return { stream, drained };
}

async function drain(stream: Transform, next: BodyStage): Promise<void> {
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      const taken = next.write(chunk);
      if (taken !== undefined) await taken;
    }
  } catch (error) {
    const code = codeOf(error);
    if (code === "Z_BUF_ERROR") throw new StageFailure("DECODE_TRUNCATED", code);
    if (code !== null && /^(?:Z_|ERR__|ERR_BROTLI|BROTLI)/.test(code)) throw new StageFailure("DECODE_ERROR", code);
    throw error;
  }
}

function createStream(coding: ContentCoding, firstChunk: Buffer): Transform {
  switch (coding) {
    case "gzip":
      return createGunzip();
    case "br":
      return createBrotliDecompress();
    case "deflate":
      return isZlibHeader(firstChunk) ? createInflate() : createInflateRaw();
  }
}

/** "deflate" is zlib by its RFC and raw by many servers. A zlib header has method 8 and, over two bytes, a multiple of 31. */
function isZlibHeader(bytes: Buffer): boolean {
  const [first = 0, second] = bytes;
  return (first & 0x0f) === 8 && (second === undefined || ((first << 8) | second) % 31 === 0);
}
