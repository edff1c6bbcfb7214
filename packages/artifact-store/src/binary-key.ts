import { randomBytes } from "node:crypto";

/** Where one stored object is: the lower-case hex SHA-256 of its bytes, and the generation its writer made. */
export type BinaryKey = { readonly sha256: string; readonly generation: string };

const SHA256 = /^[0-9a-f]{64}$/;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const RANDOM_HEX = /^[0-9a-f]{16}$/;

/** True for 64 lower-case hex digits. */
export function isSha256(value: string): boolean {
  return SHA256.test(value);
}

/** True for the two spellings of a generation: a lower-case UUID version 7, or 16 lower-case hex digits. */
export function isGeneration(value: string): boolean {
  return RANDOM_HEX.test(value) || UUID_V7.test(value);
}

/** A new generation: 64 random bits as hex. Made by the writer of an object, once for each put of a body. */
export function createGeneration(): string {
  return randomBytes(8).toString("hex");
}

/**
 * The key named by `<sha256>/<generation>`, or null. Nothing else parses: no other character, case or length, so a
 * key that came from outside can't leave the store's prefix.
 */
export function parseBinaryKey(text: string): BinaryKey | null {
  const [sha256, generation, ...rest] = text.split("/");
  if (sha256 === undefined || generation === undefined || rest.length > 0) return null;
  return isSha256(sha256) && isGeneration(generation) ? { sha256, generation } : null;
}

/** `<sha256>/<generation>`. Throws (a fault) on a key that `parseBinaryKey` would refuse. */
export function formatBinaryKey(key: BinaryKey): string {
  if (!isSha256(key.sha256) || !isGeneration(key.generation)) throw new Error("not a binary key");
  return `${key.sha256}/${key.generation}`;
}
