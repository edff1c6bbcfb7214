import { join } from "node:path";
import { type BinaryKey, formatBinaryKey, isGeneration, isSha256 } from "./binary-key.ts";

/** How the name of a file that is being written begins; its process mark follows. */
export const TEMP_PREFIX = "temp-";

/** The 256 shard folders of a prefix, in key order: the first two hex digits of the hash. */
export const SHARDS: readonly string[] = Array.from({ length: 256 }, (_, index) => index.toString(16).padStart(2, "0"));

/** The shard folder that a hash belongs to. */
export function shardOf(sha256: string): string {
  return sha256.slice(0, 2);
}

/** The path below the prefix of an object: `<shard>/<sha256>.<generation>`. Throws on what is no key. */
export function toLocalPath(key: BinaryKey): string {
  formatBinaryKey(key);
  return join(shardOf(key.sha256), `${key.sha256}.${key.generation}`);
}

/** The key of a file in `shard`, or null for a temp file and for anything the store has not written. */
export function parseLocalName(shard: string, name: string): BinaryKey | null {
  const sha256 = name.slice(0, 64);
  const generation = name.slice(65);
  if (name[64] !== "." || !isSha256(sha256) || !isGeneration(generation)) return null;
  return shardOf(sha256) === shard ? { sha256, generation } : null;
}

const PREFIX_PART = /^[a-z0-9][a-z0-9_-]{0,63}$/;

/** The prefix as given, one to four parts of `a-z 0-9 _ -` joined by `/`. Throws on any other, a dot included. */
export function checkedPrefix(prefix: string): string {
  const parts = prefix.split("/");
  if (parts.length > 4 || !parts.every((part) => PREFIX_PART.test(part))) throw new Error("not a store prefix");
  return prefix;
}
