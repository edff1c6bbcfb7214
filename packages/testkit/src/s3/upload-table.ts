import type { Piece } from "./piece-keeper.ts";
import { compareKeys } from "./sorted-keys.ts";

/** A multipart upload that is neither completed nor aborted. */
export type Upload = {
  readonly uploadId: string;
  readonly key: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly initiatedAtMs: number;
  /** By part number. */
  readonly parts: Map<number, Piece>;
};

/** The open uploads of the bucket. */
export type UploadTable = {
  get(uploadId: string, key: string): Upload | undefined;
  put(upload: Upload): void;
  /** Forgets the upload; its parts' bytes are the caller's. */
  take(uploadId: string): void;
  /** In the order of their keys, then of their ids. */
  all(): readonly Upload[];
};

/** An empty table. */
export function createUploadTable(): UploadTable {
  const uploads = new Map<string, Upload>();
  return {
    get(uploadId, key) {
      const upload = uploads.get(uploadId);
      return upload?.key === key ? upload : undefined;
    },
    put: (upload) => void uploads.set(upload.uploadId, upload),
    take: (uploadId) => void uploads.delete(uploadId),
    all: () =>
      [...uploads.values()].toSorted(
        (one, other) => compareKeys(one.key, other.key) || compareKeys(one.uploadId, other.uploadId),
      ),
  };
}
