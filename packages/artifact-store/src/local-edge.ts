import { constants } from "node:fs";
import { link, mkdir, open, unlink } from "node:fs/promises";
import { errnoOf } from "./store-unavailable.ts";

/** One new file. `write` appends all of the bytes, `sync` puts them on the disk. */
export type LocalFile = {
  write(bytes: Uint8Array): Promise<unknown>;
  sync(): Promise<void>;
  close(): Promise<void>;
};

/**
 * Every call by which the local store changes the disk; tests replace it to see the order of calls and to fill or break
 * the disk.
 */
export type LocalEdge = {
  /** Makes the directory and those above it (0700); one that exists is no error. */
  makeDirectory(path: string): Promise<void>;
  /** Creates a new file, readable and writable by its owner alone. */
  create(path: string): Promise<LocalFile>;
  /** Gives the file a second name; fails with EEXIST when that name is taken. */
  link(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  /** Puts the directory's entries on the disk. */
  syncDirectory(path: string): Promise<void>;
};

/** The real disk. */
export const LOCAL_DISK: LocalEdge = {
  async makeDirectory(path) {
    await mkdir(path, { recursive: true, mode: 0o700 });
  },
  async create(path) {
    const flags = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW;
    const handle = await open(path, flags, 0o600);
    return {
      write: async (bytes) => handle.writeFile(bytes),
      sync: async () => handle.sync(),
      close: async () => handle.close(),
    };
  },
  link,
  unlink,
  async syncDirectory(path) {
    const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  },
};

/** Removes a file; one that is not there is no error. */
export async function unlinkIfThere(edge: Pick<LocalEdge, "unlink">, path: string): Promise<void> {
  try {
    await edge.unlink(path);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}
