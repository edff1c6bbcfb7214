import type { Readable } from "node:stream";
import type { BinaryKey } from "./binary-key.ts";
import type { SpooledBody } from "./spooled-body.ts";

/** Bytes `start` to `end`, both included, counted from 0. `end` must be below the object's size. */
export type ByteRange = { readonly start: number; readonly end: number };

/** One object of a listing. `storedAt` is the store's own time of writing. */
export type StoredBinary = { readonly key: BinaryKey; readonly sizeBytes: number; readonly storedAt: Date };

/** A page of a listing, in key order. `nextCursor` is null after the last page. */
export type BinaryPage = { readonly items: readonly StoredBinary[]; readonly nextCursor: string | null };

/** What tells one backend from another. Holds no secret; a local directory is resolved through links. */
export type StoreIdentity =
  | { readonly kind: "LOCAL"; readonly prefix: string; readonly directory: string }
  | { readonly kind: "S3"; readonly prefix: string; readonly endpoint: string; readonly bucket: string };

/**
 * Immutable objects at `<prefix>/<sha256>/<generation>`. Every method throws `StoreUnavailable` when the backend can't
 * answer; none of them knows the database. `start` and `stop` make it a part of a container: start succeeds or leaves
 * nothing behind, stop is idempotent.
 */
export type BinaryStore = {
  readonly name: string;
  start(signal: AbortSignal): Promise<void>;
  stop(deadline: number): Promise<void>;
  /**
   * Stores the body; durable once it resolves. An object that is there already with the right size is left as it is, one
   * of another size is replaced. The body may be read several times and is not discarded. Throws on a body whose hash
   * is not the key's.
   */
  put(body: SpooledBody, key: BinaryKey): Promise<void>;
  /** The object's size, or null when there is none. */
  head(key: BinaryKey): Promise<{ readonly sizeBytes: number } | null>;
  /** The object's bytes, or null when there is none. Whoever takes the stream reads it to its end or destroys it. */
  read(key: BinaryKey, range?: ByteRange): Promise<Readable | null>;
  /** Removes the object; removing one that is not there is no error. Durable once it resolves. */
  delete(key: BinaryKey): Promise<void>;
  /** The page after `cursor` (null: the first), at most `limit` objects (1 to 1,000; default 1,000). */
  list(cursor: string | null, limit?: number): Promise<BinaryPage>;
  /**
   * Removes what broken-off writes left behind before `before`: scratch files, unfinished multipart uploads. Returns how
   * many; stops between two when the signal aborts.
   */
  removeStrays(before: Date, signal: AbortSignal): Promise<number>;
  /** What the one owner's mark below the prefix says; null: nobody has claimed it. */
  readOwner(): Promise<string | null>;
  /**
   * Puts the owner's mark unless there is one, then reads it twice, and returns what it says: this text, or another's who was
   * first. Never replaces one.
   */
  claimOwner(text: string): Promise<string>;
  /** Known once started. */
  identity(): StoreIdentity;
};

/** The most objects that one page of a listing holds; S3's own limit. */
export const LIST_PAGE_MAX = 1000;
