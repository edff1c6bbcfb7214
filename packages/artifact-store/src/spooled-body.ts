import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import type { ByteRange } from "./binary-store.ts";

/** How many bytes of a body `head` holds: enough for content sniffing and charset detection. */
export const HEAD_BYTES = 4096;

/** A body that has ended: hashed, counted, and kept in memory or in a spool file until it is discarded. */
export type SpooledBody = {
  /** Lower-case hex. */
  readonly sha256: string;
  readonly sizeBytes: number;
  /** The first 4,096 bytes, or all of a shorter body. */
  readonly head: Uint8Array;
  /** A new stream of the whole, or of a range; may be called again. Throws once discarded. */
  openStream(range?: ByteRange): Readable;
  /** The whole body when it is in memory, null when it is in a file. Not a copy: don't change it. */
  bytes(): Uint8Array | null;
  /** Gives memory and file back. Idempotent; a stream that is open reads on to its end. */
  discard(): Promise<void>;
};

/** A body that is kept in memory. */
export function createMemoryBody(body: {
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly content: Uint8Array;
}): SpooledBody {
  let content: Uint8Array | null = body.content;
  function whole(): Uint8Array {
    if (content === null) throw new Error("the spooled body was discarded");
    return content;
  }
  return {
    sha256: body.sha256,
    sizeBytes: body.sizeBytes,
    head: Uint8Array.from(body.content.subarray(0, HEAD_BYTES)),
    openStream(range) {
      const bytes = range === undefined ? whole() : whole().subarray(range.start, range.end + 1);
      return Readable.from(bytes.byteLength === 0 ? [] : [bytes], { objectMode: false });
    },
    bytes: whole,
    async discard() {
      content = null;
      return Promise.resolve();
    },
  };
}

/** A body that is kept in the file at `path`; `remove` deletes it, at most once. */
export function createFileBody(body: {
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly head: Uint8Array;
  readonly path: string;
  remove(): Promise<void>;
}): SpooledBody {
  let isDiscarded = false;
  return {
    sha256: body.sha256,
    sizeBytes: body.sizeBytes,
    head: body.head,
    openStream(range) {
      if (isDiscarded) throw new Error("the spooled body was discarded");
      return createReadStream(body.path, { ...range, highWaterMark: READ_BYTES });
    },
    bytes: () => null,
    async discard() {
      if (isDiscarded) return;
      isDiscarded = true;
      await body.remove();
    },
  };
}

/** How much a stream of a spool file reads at once: 256 KiB, so a 100 MiB body takes 400 reads. */
const READ_BYTES = 256 * 1024;
