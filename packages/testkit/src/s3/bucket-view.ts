import { readPieces } from "./send-answer.ts";
import type { StoredObject } from "./object-table.ts";
import type { S3Context } from "./s3-context.ts";
import type { S3Server } from "./s3-server.ts";

/** What a test sees of the bucket, and does to it, without a request. */
export type BucketView = Pick<
  S3Server,
  "objects" | "bytes" | "plant" | "remove" | "damage" | "setStoredAt" | "uploads" | "setInitiatedAt"
>;

/** The view of a server's tables. */
export function createBucketView({ objects, uploads, keeper, nowMs }: S3Context): BucketView {
  function need(key: string): StoredObject {
    const object = objects.get(key);
    if (object === undefined) throw new Error(`the bucket holds no ${key}`);
    return object;
  }
  return {
    objects: () =>
      new Map(
        objects
          .all()
          .map(({ key, sizeBytes, sha256, metadata, headers, storedAtMs }) => [
            key,
            { sizeBytes, sha256, metadata, contentType: headers["content-type"], storedAt: new Date(storedAtMs) },
          ]),
      ),
    async bytes(key) {
      const { pieces, sizeBytes } = need(key);
      const chunks: Buffer[] = [];
      for await (const chunk of readPieces(pieces, 0, sizeBytes - 1)) chunks.push(chunk);
      return Buffer.concat(chunks);
    },
    async plant(key, bytes, metadata = {}) {
      const sink = await keeper.open();
      await sink.write(Buffer.from(bytes));
      const piece = await sink.finish();
      const { sizeBytes, sha256, md5 } = piece;
      const storedAtMs = nowMs();
      objects.put({ key, pieces: [piece], sizeBytes, sha256, etag: md5, metadata, headers: {}, storedAtMs });
    },
    remove: (key) => objects.delete(key),
    async damage(key, how = "FLIP") {
      const object = need(key);
      const last = object.pieces.findLast(({ sizeBytes }) => sizeBytes > 0);
      if (last === undefined) throw new Error("an empty object has no byte to damage");
      await last.damage(how);
      if (how === "TRUNCATE") objects.put({ ...object, sizeBytes: object.sizeBytes - 1 });
    },
    setStoredAt: (key, storedAt) => objects.put({ ...need(key), storedAtMs: storedAt.getTime() }),
    uploads: () =>
      uploads.all().map(({ uploadId, key, initiatedAtMs, parts }) => ({
        uploadId,
        key,
        initiatedAt: new Date(initiatedAtMs),
        parts: new Map([...parts].map(([partNumber, { sizeBytes }]) => [partNumber, sizeBytes])),
      })),
    setInitiatedAt(uploadId, initiatedAt) {
      const upload = uploads.all().find((candidate) => candidate.uploadId === uploadId);
      if (upload === undefined) throw new Error(`the bucket holds no upload ${uploadId}`);
      uploads.put({ ...upload, initiatedAtMs: initiatedAt.getTime() });
    },
  };
}
