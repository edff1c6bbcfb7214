import type { Tx } from "../database.ts";

/** The objects of the newest AVAILABLE blobs: a sample of what a store must hold. The hash is in hex. */
export async function listNewestBlobs(
  sql: Tx,
  limit: number,
): Promise<readonly { readonly sha256: string; readonly generation: string }[]> {
  return sql<{ sha256: string; generation: string }[]>`
    select encode(sha256, 'hex') as sha256, generation from blobs where state = 'AVAILABLE' order by id desc limit ${limit}`;
}
