import type { Tx } from "../../database.ts";

/** Stored bytes to be read against their hash. */
export type BlobToVerify = {
  readonly id: string;
  /** Lower-case hex. */
  readonly sha256: string;
  readonly generation: string;
  readonly sizeBytes: number;
  /** When they were last read, before this. */
  readonly verifiedAt: Date;
};

/**
 * Takes the AVAILABLE blob that has been unread longest, if that is `unreadMs` or more, by saying that it is being read now:
 * no other worker takes it for that long. One that a worker dies over is read that much later. Null: all have been read.
 * Settles don't wait for it, nor it for anybody.
 */
export async function takeBlobToVerify(sql: Tx, unreadMs: number): Promise<BlobToVerify | null> {
  const [blob] = await sql<BlobToVerify[]>`
    with longest as materialized (
      select id, verified_at from blobs
      where state = 'AVAILABLE' and verified_at <= statement_timestamp() - make_interval(secs => ${unreadMs / 1000}::float8)
      order by verified_at
      limit 1
      for no key update skip locked
    )
    update blobs b set verified_at = clock_timestamp()
    from longest l where b.id = l.id
    returning b.id, encode(b.sha256, 'hex') as sha256, b.generation, b.size_bytes::float8 as "sizeBytes",
              l.verified_at as "verifiedAt"`;
  return blob ?? null;
}

/** Puts a blob that was taken back where it was, to be taken again first. */
export async function putBackBlob(sql: Tx, blob: Pick<BlobToVerify, "id" | "verifiedAt">): Promise<void> {
  await sql`update blobs set verified_at = ${blob.verifiedAt} where id = ${blob.id} and state = 'AVAILABLE'`;
}
