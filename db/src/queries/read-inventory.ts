import { createHash } from "node:crypto";
import type { Sql } from "../database.ts";

/** The objects that rows name. `sha256` is of their keys, in byte order, each followed by a line feed; in hex. */
export type Inventory = { readonly objects: number; readonly bytes: number; readonly sha256: string };

/** Keys in memory at a time. */
const CHUNK = 1_000;

/** Reads the inventory of a database: blobs, and objects that are on their way out (their bytes are not counted). */
export async function readInventory(sql: Sql): Promise<Inventory> {
  const hash = createHash("sha256");
  let [objects, bytes] = [0, 0];
  const keys = sql<{ key: string; size: string }[]>`
    select key collate "C" as key, max(size) as size
    from (
      select encode(sha256, 'hex') || '/' || generation as key, size_bytes as size from blobs
      union all
      select encode(sha256, 'hex') || '/' || generation, 0 from object_deletions
    ) named
    group by 1 order by 1`;
  for await (const rows of keys.cursor(CHUNK)) {
    for (const { key, size } of rows) {
      hash.update(`${key}\n`);
      objects += 1;
      bytes += Number(size);
    }
  }
  return { objects, bytes, sha256: hash.digest("hex") };
}
