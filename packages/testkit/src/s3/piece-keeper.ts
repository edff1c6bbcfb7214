import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, open, truncate, unlink } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";

/** Bytes that were received whole: an object's, or one part's of an upload. */
export type Piece = {
  readonly sizeBytes: number;
  /** Hex, of the bytes as they were received. */
  readonly sha256: string;
  /** Hex, of the bytes as they were received. */
  readonly md5: string;
  readonly crc32: number;
  /** Bytes `start` to `end`, both included. */
  read(start: number, end: number): AsyncIterable<Buffer>;
  /** Keeps the bytes readable, also through `remove`, until the returned function is called. */
  hold(): () => void;
  remove(): Promise<void>;
  /** FLIP changes the last byte, TRUNCATE takes it away. Throws on an empty piece. */
  damage(how: Damage): Promise<void>;
};

/** What goes wrong below a store. */
export type Damage = "FLIP" | "TRUNCATE";

/** Takes one body in. A finished or abandoned sink takes nothing more. */
export type PieceSink = {
  write(chunk: Buffer): Promise<void>;
  finish(): Promise<Piece>;
  abandon(): Promise<void>;
};

/** Where bodies go. Without a directory they live in memory. */
export type PieceKeeper = { open(): Promise<PieceSink> };

type Bytes = Pick<Piece, "read" | "remove" | "damage">;

/** A keeper whose bodies live in memory, or, with a directory (which must exist), in one file each. */
export function createPieceKeeper(directory: string | undefined): PieceKeeper {
  let count = 0;
  return {
    async open() {
      if (directory === undefined) return countedSink(memorySink());
      count += 1;
      const path = join(directory, `piece-${count}`);
      return countedSink(fileSink(path, await open(path, "wx")));
    },
  };
}

type ByteSink = {
  write(chunk: Buffer): Promise<void>;
  finish(): Promise<Bytes>;
  abandon(): Promise<void>;
};

function countedSink(sink: ByteSink): PieceSink {
  const sha256 = createHash("sha256");
  const md5 = createHash("md5");
  let cyclic = 0;
  let sizeBytes = 0;
  return {
    async write(chunk) {
      sha256.update(chunk);
      md5.update(chunk);
      cyclic = crc32(chunk, cyclic);
      sizeBytes += chunk.length;
      await sink.write(chunk);
    },
    async finish() {
      const bytes = await sink.finish();
      const digests = { sizeBytes, sha256: sha256.digest("hex"), md5: md5.digest("hex"), crc32: cyclic };
      return { ...digests, ...holdable(bytes) };
    },
    abandon: () => sink.abandon(),
  };
}

function holdable(bytes: Bytes): Bytes & Pick<Piece, "hold"> {
  let holders = 0;
  let doomed: (() => void) | undefined;
  return {
    read: bytes.read,
    damage: bytes.damage,
    hold() {
      holders += 1;
      let held = true;
      return () => {
        if (!held) return;
        held = false;
        holders -= 1;
        if (holders === 0) doomed?.();
      };
    },
    async remove() {
      if (holders > 0) await new Promise<void>((resolve) => (doomed = resolve));
      await bytes.remove();
    },
  };
}

function memorySink(): ByteSink {
  const chunks: Buffer[] = [];
  return {
    write(chunk) {
      chunks.push(chunk);
      return Promise.resolve();
    },
    finish() {
      let kept = Buffer.concat(chunks);
      chunks.length = 0;
      return Promise.resolve({
        async *read(start: number, end: number) {
          await Promise.resolve();
          if (start < kept.length) yield kept.subarray(start, end + 1);
        },
        remove() {
          kept = Buffer.alloc(0);
          return Promise.resolve();
        },
        damage(how: Damage) {
          const last = kept.length - 1;
          if (last < 0) throw new Error("an empty object has no byte to damage");
          const copy = Buffer.from(how === "FLIP" ? kept : kept.subarray(0, last));
          if (how === "FLIP") copy[last] = (copy[last] ?? 0) ^ 0xff;
          kept = copy;
          return Promise.resolve();
        },
      });
    },
    abandon() {
      chunks.length = 0;
      return Promise.resolve();
    },
  };
}

function fileSink(path: string, handle: FileHandle): ByteSink {
  return {
    async write(chunk) {
      await handle.writeFile(chunk);
    },
    async finish() {
      await handle.close();
      return {
        read: (start: number, end: number): AsyncIterable<Buffer> => createReadStream(path, { start, end }),
        remove: () => unlink(path),
        damage: (how: Damage) => damageFile(path, how),
      };
    },
    async abandon() {
      await handle.close();
      await unlink(path);
    },
  };
}

async function damageFile(path: string, how: Damage): Promise<void> {
  const file = await open(path, "r+");
  try {
    const last = (await file.stat()).size - 1;
    if (last < 0) throw new Error("an empty object has no byte to damage");
    if (how === "TRUNCATE") {
      await truncate(path, last);
      return;
    }
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, last);
    buffer[0] = (buffer[0] ?? 0) ^ 0xff;
    await file.write(buffer, 0, 1, last);
  } finally {
    await file.close();
  }
}
