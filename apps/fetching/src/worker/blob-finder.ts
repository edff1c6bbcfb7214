import type { AvailableBlob } from "@keble-scraper/db";

/** Tells whether bytes of a hash are in the store already. */
export type BlobFinder = { find(sha256: string): Promise<string | null> };

/** Hashes of one look-up; more go in several. */
const GROUP_MAX = 100;
/** What a hash may wait for others: a look-up of its own costs more CPU than a small page's put. */
const GATHER_MS = 2;

/** The id of the AVAILABLE blob of a hash (hex), or null. Hashes that are asked for at about the same time share a look-up. */
export function createBlobFinder(list: (sha256s: readonly string[]) => Promise<readonly AvailableBlob[]>): BlobFinder {
  let gathering: { readonly sha256s: Set<string>; readonly found: Promise<ReadonlyMap<string, string>> } | null = null;

  function gather() {
    const sha256s = new Set<string>();
    const found = new Promise<void>((resolve) => setTimeout(resolve, GATHER_MS)).then(async () => {
      if (gathering?.sha256s === sha256s) gathering = null;
      const blobs = await list([...sha256s]);
      return new Map(blobs.map((blob) => [blob.sha256, blob.id]));
    });
    return { sha256s, found };
  }

  return {
    async find(sha256) {
      if (gathering === null || gathering.sha256s.size >= GROUP_MAX) gathering = gather();
      const { sha256s, found } = gathering;
      sha256s.add(sha256);
      return (await found).get(sha256) ?? null;
    },
  };
}
