import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Piece } from "./piece-keeper.ts";
import type { S3Answer } from "./s3-answer.ts";

/** Writes an answer, its bytes with back-pressure. Returns how many bytes of body went out; throws when the reader hangs up. */
export async function sendAnswer(answer: S3Answer, response: ServerResponse): Promise<number> {
  const { status, headers, body } = answer;
  switch (body.kind) {
    case "NONE":
      response.writeHead(status, headers).end();
      return 0;
    case "TEXT": {
      const bytes = Buffer.from(body.text);
      response.writeHead(status, { ...headers, "content-length": String(bytes.length) }).end(bytes);
      return bytes.length;
    }
    case "BYTES":
      response.writeHead(status, headers);
      await pipeline(Readable.from(readPieces(body.pieces, body.start, body.end), { objectMode: false }), response);
      return body.end - body.start + 1;
  }
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
