import { createHash } from "node:crypto";
import type { BinaryKey, BinaryStore } from "@keble-scraper/artifact-store";

/** What a stored object was found to be, and how many bytes were read for it. */
export type ReadVerdict = {
  /** SOUND: its size and its hash. MISSING: the store says that there is none. ABORTED: the signal ended the read. */
  readonly verdict: "SOUND" | "MISSING" | "DAMAGED" | "ABORTED";
  readonly bytes: number;
};

/**
 * Reads an object against its hash and its size, a chunk at a time: never more than a chunk beyond that size. Throws
 * `StoreUnavailable` when the store does not answer or breaks off, which says nothing about the object.
 */
export async function readObject(
  store: Pick<BinaryStore, "read">,
  object: BinaryKey & { readonly sizeBytes: number },
  signal: AbortSignal,
): Promise<ReadVerdict> {
  const { sha256, generation, sizeBytes } = object;
  const stream = await store.read({ sha256, generation });
  if (stream === null) return { verdict: "MISSING", bytes: 0 };
  const hash = createHash("sha256");
  let bytes = 0;
  // Leaving the loop early destroys the stream.
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    hash.update(chunk);
    bytes += chunk.byteLength;
    if (bytes > sizeBytes) return { verdict: "DAMAGED", bytes };
    if (signal.aborted) return { verdict: "ABORTED", bytes };
  }
  const isSound = bytes === sizeBytes && hash.digest("hex") === sha256;
  return { verdict: isSound ? "SOUND" : "DAMAGED", bytes };
}
