import type { ServerResponse } from "node:http";
import { finished } from "node:stream/promises";
import type { Piece } from "./piece-keeper.ts";
import type { S3Answer, S3AnswerBody } from "./s3-answer.ts";

/** What happens to an answer on its way, after so many bytes of its body. */
export type Breakage = { readonly how: "CUT" | "STALL"; readonly afterBytes: number };

/**
 * Writes an answer, its bytes with back-pressure, and tells each count of bytes as it goes out. Resolves when the whole
 * of it was handed over, or, with a breakage, when that was done; throws when the reader hangs up.
 */
export async function sendAnswer(
  { status, headers, body }: S3Answer,
  response: ServerResponse,
  onSent: (bytes: number) => void,
  breakage?: Breakage,
): Promise<void> {
  const length = body.kind === "TEXT" ? { "content-length": String(Buffer.byteLength(body.text)) } : {};
  response.writeHead(status, { ...headers, ...length });
  let left = breakage?.afterBytes ?? Infinity;
  for await (const chunk of bytesOf(body)) {
    if (left <= 0) break;
    const part = chunk.subarray(0, Math.min(chunk.length, left));
    left -= part.length;
    await write(response, part);
    onSent(part.length);
  }
  if (breakage === undefined) {
    response.end();
    await finished(response);
    return;
  }
  response.flushHeaders();
  if (breakage.how === "CUT") response.socket?.destroySoon();
}

/** Bytes `start` to `end`, both included, of pieces laid end to end. They stay readable until the reader is done. */
export async function* readPieces(pieces: readonly Piece[], start: number, end: number): AsyncGenerator<Buffer> {
  const releases = pieces.map((piece) => piece.hold());
  try {
    let offset = 0;
    for (const piece of pieces) {
      const from = Math.max(start - offset, 0);
      const to = Math.min(end - offset, piece.sizeBytes - 1);
      if (from <= to) yield* piece.read(from, to);
      offset += piece.sizeBytes;
    }
  } finally {
    for (const release of releases) release();
  }
}

/** Bytes are sent in pieces of at most this many. */
const CHUNK_BYTES = 64 * 1024;

async function* bytesOf(body: S3AnswerBody): AsyncGenerator<Buffer> {
  if (body.kind === "NONE") return;
  if (body.kind === "TEXT") {
    yield Buffer.from(body.text);
    return;
  }
  for await (const bytes of readPieces(body.pieces, body.start, body.end)) {
    for (let i = 0; i < bytes.length; i += CHUNK_BYTES) yield bytes.subarray(i, i + CHUNK_BYTES);
  }
}

async function write(response: ServerResponse, bytes: Buffer): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const hungUp = (): void => reject(new Error("the reader hung up"));
    if (response.destroyed || response.closed) {
      hungUp();
      return;
    }
    response.once("close", hungUp);
    response.write(bytes, (error) => {
      response.off("close", hungUp);
      if (error == null) resolve();
      else reject(error);
    });
  });
}
