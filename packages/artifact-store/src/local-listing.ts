import type { Stats } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { formatBinaryKey, parseBinaryKey } from "./binary-key.ts";
import { type BinaryPage, LIST_PAGE_MAX, type StoredBinary } from "./binary-store.ts";
import { parseLocalName, SHARDS, shardOf } from "./local-names.ts";
import { errnoOf } from "./store-unavailable.ts";

/** One page of the objects below `root`. Holds the names of one shard at a time: 40,000 of them at ten million objects. */
export async function listLocal(root: string, cursor: string | null, limit: number): Promise<BinaryPage> {
  const after = cursor === null ? null : parseBinaryKey(cursor);
  if (cursor !== null && after === null) throw new Error("not a listing cursor");
  if (!Number.isInteger(limit) || limit < 1 || limit > LIST_PAGE_MAX) throw new Error("not a page size");

  const items: StoredBinary[] = [];
  for (const shard of SHARDS) {
    if (after !== null && shard < shardOf(after.sha256)) continue;
    for (const name of await shardNames(join(root, shard))) {
      const key = parseLocalName(shard, name);
      if (key === null || (cursor !== null && formatBinaryKey(key) <= cursor)) continue;
      const stats = await lstatIfThere(join(root, shard, name));
      if (stats === null || !stats.isFile()) continue;
      items.push({ key, sizeBytes: stats.size, storedAt: stats.mtime });
      if (items.length === limit) return { items, nextCursor: formatBinaryKey(key) };
    }
  }
  return { items, nextCursor: null };
}

/** The sorted names in a shard folder; none when the folder is not there. */
export async function shardNames(path: string): Promise<readonly string[]> {
  try {
    return (await readdir(path)).toSorted();
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  }
}

/** What is at the path itself, links not followed; null when nothing is. */
export async function lstatIfThere(path: string): Promise<Stats | null> {
  try {
    return await lstat(path);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw error;
  }
}
