import { mkdir, readdir, stat, unlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { isStrayMark } from "./process-mark.ts";
import { openSpoolBody, SPOOL_FILE_PREFIX, type SpoolBody } from "./spool-body.ts";
import { SPOOL_DISK, type SpoolEdge } from "./spool-edge.ts";
import { HEAD_BYTES } from "./spooled-body.ts";
import { errnoOf, toStoreFault } from "./store-unavailable.ts";

/**
 * Where bodies wait, hashed, between the fetch and the commit that names them. `start` makes the directory (0700) and
 * removes what dead processes left in it; `stop` removes what this process still holds.
 */
export type Spool = {
  readonly name: string;
  start(signal: AbortSignal): Promise<void>;
  stop(deadline: number): Promise<void>;
  open(): SpoolBody;
  /** Files of this process that are not discarded yet. */
  readonly files: number;
};

/** Up to here a body stays in memory, and this is the most that a body of any size holds there: 256 KiB. */
export const SPOOL_MEMORY_BYTES = 256 * 1024;

/** A spool in `directory`. `memoryBytesMax` (bytes, at least 4,096) is per body. */
export function createSpool(options: {
  readonly directory: string;
  readonly memoryBytesMax?: number;
  readonly edge?: SpoolEdge;
}): Spool {
  const directory = resolve(options.directory);
  const memoryBytesMax = Math.max(HEAD_BYTES, options.memoryBytesMax ?? SPOOL_MEMORY_BYTES);
  const edge = options.edge ?? SPOOL_DISK;
  const files = new Set<string>();

  return {
    name: "spool",
    get files() {
      return files.size;
    },
    async start() {
      try {
        await mkdir(directory, { recursive: true, mode: 0o700 });
        await sweepSpool(directory);
      } catch (error) {
        throw toStoreFault(error);
      }
    },
    async stop() {
      await Promise.allSettled(Array.from(files, async (path) => edge.unlink(path)));
      files.clear();
    },
    open() {
      return openSpoolBody({ directory, memoryBytesMax, edge, files });
    },
  };
}

async function sweepSpool(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!name.startsWith(SPOOL_FILE_PREFIX)) continue;
    const path = join(directory, name);
    try {
      const { mtimeMs } = await stat(path);
      if (isStrayMark(name.slice(SPOOL_FILE_PREFIX.length), Date.now() - mtimeMs)) await unlink(path);
    } catch (error) {
      // Another process that starts at the same time swept it first.
      if (errnoOf(error) !== "ENOENT") throw error;
    }
  }
}
