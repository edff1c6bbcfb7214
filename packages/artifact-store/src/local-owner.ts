import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { type LocalEdge, unlinkIfThere } from "./local-edge.ts";
import { TEMP_PREFIX } from "./local-names.ts";
import { OWNER_BYTES_MAX, OWNER_NAME } from "./owner-mark.ts";
import { createMark } from "./process-mark.ts";
import { errnoOf } from "./store-unavailable.ts";

/** What the owner's mark in `root` says; null: there is none. */
export async function readLocalOwner(root: string): Promise<string | null> {
  try {
    const handle = await open(join(root, OWNER_NAME), constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(OWNER_BYTES_MAX), 0, OWNER_BYTES_MAX, 0);
      return buffer.toString("utf8", 0, bytesRead);
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw error;
  }
}

/** Puts the mark, whole and synced, unless there is one: a link never writes over a name. */
export async function putLocalOwner(edge: LocalEdge, root: string, text: string): Promise<void> {
  const temp = join(root, `${TEMP_PREFIX}${createMark()}`);
  try {
    const file = await edge.create(temp);
    try {
      await file.write(Buffer.from(text));
      await file.sync();
    } finally {
      await file.close();
    }
    await edge.link(temp, join(root, OWNER_NAME));
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
  } finally {
    await unlinkIfThere(edge, temp);
  }
  await edge.syncDirectory(root);
}
