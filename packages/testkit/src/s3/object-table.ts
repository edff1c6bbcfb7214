import type { Piece } from "./piece-keeper.ts";
import { compareKeys, insertSorted, positionOf } from "./sorted-keys.ts";

/** One object. Its bytes are those of its pieces, in order. */
export type StoredObject = {
  readonly key: string;
  readonly pieces: readonly Piece[];
  readonly sizeBytes: number;
  /** Hex, of the bytes as they came in. */
  readonly sha256: string;
  /** Without quotes, lower case. */
  readonly etag: string;
  /** `x-amz-meta-*` without that prefix. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The kept ones of the headers it was put with, such as content-type. */
  readonly headers: Readonly<Record<string, string>>;
  readonly storedAtMs: number;
};

/** The objects of the bucket, in key order. */
export type ObjectTable = {
  get(key: string): StoredObject | undefined;
  /** Replaces what is there. */
  put(object: StoredObject): void;
  /** False: there was none. Bytes that are being read stay until they are read. */
  delete(key: string): boolean;
  /** All of them, in key order. */
  all(): readonly StoredObject[];
  /** At most `limit` objects with the prefix whose keys come after `after` ("": from the start), in key order. */
  listAfter(after: string, prefix: string, limit: number): readonly StoredObject[];
};

/** An empty table. */
export function createObjectTable(): ObjectTable {
  const objects = new Map<string, StoredObject>();
  const keys: string[] = [];

  function drop(object: StoredObject): void {
    for (const piece of object.pieces) void piece.remove();
  }

  return {
    get: (key) => objects.get(key),
    put(object) {
      const before = objects.get(object.key);
      if (before === undefined) insertSorted(keys, object.key);
      objects.set(object.key, object);
      // A change of the row alone keeps its bytes.
      if (before !== undefined && before.pieces !== object.pieces) drop(before);
    },
    delete(key) {
      const object = objects.get(key);
      if (object === undefined) return false;
      objects.delete(key);
      keys.splice(positionOf(keys, key), 1);
      drop(object);
      return true;
    },
    all: () => keys.flatMap((key) => objects.get(key) ?? []),
    listAfter(after, prefix, limit) {
      const found: StoredObject[] = [];
      const from = compareKeys(prefix, after) > 0 ? positionOf(keys, prefix) : positionOf(keys, after);
      for (let i = from; i < keys.length && found.length < limit; i += 1) {
        const key = keys[i] ?? "";
        if (key === after) continue;
        if (!key.startsWith(prefix)) break;
        found.push(...[objects.get(key) ?? []].flat());
      }
      return found;
    },
  };
}
