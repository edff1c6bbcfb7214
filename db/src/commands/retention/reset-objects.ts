import type { Sql } from "../../database.ts";
import { addGone } from "./reset-run.ts";

/** An object of the store that a row names. `from` says which row; the hash is in hex. */
export type ResetObject = {
  readonly from: "blobs" | "object_deletions";
  readonly id: string;
  readonly sha256: string;
  readonly generation: string;
};

/** The next objects that rows still name, at most `limit`: those of blobs first. None: no row names one. */
export async function listResetObjects(sql: Sql, limit: number): Promise<readonly ResetObject[]> {
  const blobs = await sql<ResetObject[]>`
    select 'blobs' as "from", id, encode(sha256, 'hex') as sha256, generation from blobs order by id limit ${limit}`;
  if (blobs.length > 0) return blobs;
  return sql<ResetObject[]>`
    select 'object_deletions' as "from", id, encode(sha256, 'hex') as sha256, generation
    from object_deletions order by id limit ${limit}`;
}

/**
 * Deletes the rows of objects that are gone from the store, in one transaction: never called before they are. The artifacts that they were
 * of become tombstones, so that what a broken-off reset leaves is told as gone, and not as there.
 */
export async function forgetResetObjects(sql: Sql, campaign: string, objects: readonly ResetObject[]): Promise<void> {
  const idsOf = (from: ResetObject["from"]) => objects.filter((object) => object.from === from).map(({ id }) => id);
  const [blobIds, deletionIds] = [idsOf("blobs"), idsOf("object_deletions")];
  await sql.begin(async (tx) => {
    await tx`
      update artifacts set state = 'DELETED', blob_id = null, deleted_at = clock_timestamp()
      where blob_id = any(${blobIds}::uuid[])`;
    await tx`delete from object_deletions where blob_id = any(${blobIds}::uuid[]) or id = any(${deletionIds}::uuid[])`;
    await tx`delete from blobs where id = any(${blobIds}::uuid[])`;
    await addGone(tx, campaign, "objects", objects.length);
  });
}
