import type { Tx } from "../database.ts";

/** Bytes that are in the store. */
export type AvailableBlob = { readonly id: string; readonly generation: string; readonly sizeBytes: number };

/** The AVAILABLE blob of a hash (hex), if any: its put can be skipped. The settle checks that it is still there. */
export async function findAvailableBlob(sql: Tx, sha256: string): Promise<AvailableBlob | null> {
  const [row] = await sql<AvailableBlob[]>`
    select id, generation, size_bytes::float8 as "sizeBytes" from blobs
    where sha256 = decode(${sha256}, 'hex') and state = 'AVAILABLE'`;
  return row ?? null;
}
