import type { AvailableBlob } from "@keble-scraper/db";
import { createGather } from "./gather.ts";

/** Tells whether bytes of a hash are in the store already. */
export type BlobFinder = { find(sha256: string): Promise<string | null> };

/** Look-ups of one statement; more go in several. */
const GROUP_MAX = 100;

/** The id of the AVAILABLE blob of a hash (hex), or null. Hashes that are asked for at about the same time share a look-up. */
export function createBlobFinder(list: (sha256s: readonly string[]) => Promise<readonly AvailableBlob[]>): BlobFinder {
  const find = createGather<string, string | null>({
    max: GROUP_MAX,
    async run(sha256s) {
      const blobs = await list([...new Set(sha256s)]);
      const ids = new Map(blobs.map((blob) => [blob.sha256, blob.id]));
      return sha256s.map((sha256) => ids.get(sha256) ?? null);
    },
  });
  return { find };
}
