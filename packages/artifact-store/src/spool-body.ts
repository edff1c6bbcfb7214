import { createHash } from "node:crypto";
import { join } from "node:path";
import { createMark } from "./process-mark.ts";
import type { SpoolEdge, SpoolFile } from "./spool-edge.ts";
import { createFileBody, createMemoryBody, HEAD_BYTES, type SpooledBody } from "./spooled-body.ts";
import { errnoOf, toStoreFault } from "./store-unavailable.ts";

/** A body on its way in. Whoever opened it calls `finish` or `discard`. */
export type SpoolBody = {
  /**
   * Takes the next bytes. A promise means the disk is behind: wait for it before the next write, and don't change the
   * chunk meanwhile. Throws or rejects with `StoreUnavailable` when the spool can't take them; the body is then spent and has
   * left nothing behind.
   */
  write(chunk: Uint8Array): void | Promise<void>;
  /** Ends the body. Called once. */
  finish(): Promise<SpooledBody>;
  /** Drops the body with its file. Idempotent; does nothing once `finish` has handed the body over. */
  discard(): Promise<void>;
};

/** What the bodies of one spool share. `files` names the files that are not removed yet. */
export type SpoolContext = {
  readonly directory: string;
  readonly memoryBytesMax: number;
  readonly edge: SpoolEdge;
  readonly files: Set<string>;
};

/** How a spool file's name begins; its process mark follows. */
export const SPOOL_FILE_PREFIX = "body-";
const FIRST_BUFFER_BYTES = 16 * 1024;

/** Opens a body. Touches no disk until the memory limit is passed. */
export function openSpoolBody(context: SpoolContext): SpoolBody {
  const hash = createHash("sha256");
  let buffer = Buffer.allocUnsafeSlow(Math.min(FIRST_BUFFER_BYTES, context.memoryBytesMax));
  let used = 0;
  let sizeBytes = 0;
  let head: Uint8Array | null = null;
  let file: SpoolFile | null = null;
  let path: string | null = null;
  let tail: Promise<void> | null = null;
  let state: "OPEN" | "ENDED" | "FAILED" = "OPEN";
  let fault: unknown = null;

  function isSpent(): boolean {
    return state === "FAILED";
  }

  /** Copies what fits, growing the buffer up to its limit; returns how many bytes it took. */
  function take(chunk: Uint8Array): number {
    const wanted = Math.min(used + chunk.byteLength, context.memoryBytesMax);
    if (wanted > buffer.byteLength) {
      const larger = Buffer.allocUnsafeSlow(Math.min(context.memoryBytesMax, Math.max(wanted, buffer.byteLength * 2)));
      buffer.copy(larger, 0, 0, used);
      buffer = larger;
    }
    const count = Math.min(chunk.byteLength, buffer.byteLength - used);
    buffer.set(chunk.subarray(0, count), used);
    used += count;
    return count;
  }

  async function flush(): Promise<void> {
    if (file === null) {
      head = Uint8Array.from(buffer.subarray(0, Math.min(used, HEAD_BYTES)));
      const created = join(context.directory, `${SPOOL_FILE_PREFIX}${createMark()}`);
      file = await context.edge.create(created);
      path = created;
      context.files.add(created);
    }
    await file.write(buffer.subarray(0, used));
    used = 0;
  }

  async function append(chunk: Uint8Array): Promise<void> {
    let rest = chunk;
    while (rest.byteLength > 0) {
      if (used === context.memoryBytesMax) await flush();
      rest = rest.subarray(take(rest));
    }
  }

  async function drop(): Promise<void> {
    const [openFile, madePath] = [file, path];
    file = null;
    path = null;
    buffer = Buffer.alloc(0);
    used = 0;
    try {
      await openFile?.close();
    } finally {
      if (madePath !== null) await removeFile(context, madePath);
    }
  }

  /** Runs one step after the ones before it; the first that fails spends the body. */
  async function enqueue(step: () => Promise<void>): Promise<void> {
    const before = tail;
    const own = (async () => {
      if (before !== null) await before;
      if (state === "FAILED") throw fault;
      try {
        await step();
      } catch (error) {
        state = "FAILED";
        fault = toStoreFault(error);
        await drop().catch(() => undefined);
        throw fault;
      }
    })();
    tail = own;
    try {
      await own;
    } finally {
      if (tail === own) tail = null;
    }
  }

  return {
    write(chunk) {
      if (state === "FAILED") throw fault;
      if (state === "ENDED") throw new Error("write after the end of a spool body");
      hash.update(chunk);
      sizeBytes += chunk.byteLength;
      if (tail === null && used + chunk.byteLength <= context.memoryBytesMax) {
        take(chunk);
        return undefined;
      }
      return enqueue(async () => append(chunk));
    },
    async finish() {
      if (state === "ENDED") throw new Error("a spool body ends once");
      await enqueue(async () => {
        if (file === null) return;
        if (used > 0) await flush();
        await file.close();
        file = null;
      });
      // A discard that came while the last bytes were written wins.
      if (isSpent()) throw fault;
      state = "ENDED";
      const content = buffer.subarray(0, used);
      const madePath = path;
      const ended = { sha256: hash.digest("hex"), sizeBytes };
      buffer = Buffer.alloc(0);
      path = null;
      if (madePath === null) return createMemoryBody({ ...ended, content });
      const remove = async (): Promise<void> => removeFile(context, madePath);
      return createFileBody({ ...ended, head: head ?? new Uint8Array(), path: madePath, remove });
    },
    async discard() {
      if (state !== "OPEN") return;
      state = "FAILED";
      fault = new Error("the spool body was discarded");
      await tail?.catch(() => undefined);
      await drop().catch((error: unknown) => {
        throw toStoreFault(error);
      });
    },
  };
}

async function removeFile(context: SpoolContext, path: string): Promise<void> {
  context.files.delete(path);
  try {
    await context.edge.unlink(path);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw toStoreFault(error);
  }
}
