import { constants } from "node:fs";
import { open, unlink } from "node:fs/promises";

/** One new spool file. `write` appends all of the bytes. */
export type SpoolFile = { write(bytes: Uint8Array): Promise<unknown>; close(): Promise<void> };

/** The spool's edge to the disk; tests replace it to fill or to break the disk. */
export type SpoolEdge = {
  /** Creates a new file, readable and writable by its owner alone. */
  create(path: string): Promise<SpoolFile>;
  unlink(path: string): Promise<void>;
};

/** The real disk. */
export const SPOOL_DISK: SpoolEdge = {
  async create(path) {
    const flags = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW;
    const handle = await open(path, flags, 0o600);
    return { write: async (bytes) => handle.writeFile(bytes), close: async () => handle.close() };
  },
  unlink,
};
