import type { Tx } from "../database.ts";

/** Bytes that are in the store, by their hash (hex). */
export type AvailableBlob = { readonly id: string; readonly sha256: string };

/** The AVAILABLE blobs of these hashes (hex): their puts can be skipped. The settle checks that they are still there. */
export async function listAvailableBlobs(sql: Tx, sha256s: readonly string[]): Promise<AvailableBlob[]> {
  if (sha256s.length === 0) return [];
  // A scalar subquery each: as a join it was seen to read the whole index.
  return sql<AvailableBlob[]>`
    select id, sha256 from (
      select h.sha256, (select b.id from blobs b where b.sha256 = decode(h.sha256, 'hex') and b.state = 'AVAILABLE') as id
      from unnest(${[...sha256s]}::text[]) as h (sha256)
    ) found where id is not null`;
}
