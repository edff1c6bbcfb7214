import type { BinaryStore } from "@keble-scraper/artifact-store";
import type { ListedObject, ListingPlace } from "@keble-scraper/db/commands/artifacts";
import type { Clock, Logger } from "@keble-scraper/service";

/**
 * The age from which an object without a row is an orphan. A job's deadline is at most a day after its submit, and no
 * settle is taken more than the abort grace past it: what is older than both will never be named. The quarter of an
 * hour is for that grace and for the store's clock, by which objects are dated: S3 itself refuses requests from clocks that
 * differ from its own by more.
 */
export const ORPHAN_AGE_MS = 24 * 3_600_000 + 15 * 60_000;
/** From the beginning of one pass to that of the next. */
export const PASS_EVERY_MS = 24 * 3_600_000;
/** Pages of 1,000 objects of one run: at a run every 15 s, ten million objects take seven hours. */
const PAGES_PER_RUN = 6;

/** What looking for orphans works with. */
export type ListingScrubParts = {
  readonly store: Pick<BinaryStore, "list" | "head">;
  /** Throws unless the store is there and is the database's: another's objects have no row here, and are no orphans. */
  checkPlace(): Promise<void>;
  openListing(): Promise<ListingPlace | null>;
  advanceListing(from: ListingPlace, next: string | null): Promise<boolean>;
  listUnnamedObjects(objects: readonly ListedObject[]): Promise<readonly ListedObject[]>;
  queueOrphan(object: ListedObject): Promise<boolean>;
  readonly clock: Pick<Clock, "wallMs">;
  readonly pagesPerRun?: number;
  readonly logger: Logger;
};

/**
 * Goes over the store's listing and queues for deletion what no row names and is too old to be named any more. The place is
 * in the database: a pass goes on where the last run of any worker left it, and a worker that finds another ahead of it
 * lets it go on. Returns how many were queued.
 */
export function createListingScrub(parts: ListingScrubParts): (signal: AbortSignal) => Promise<number> {
  const { store, logger, pagesPerRun = PAGES_PER_RUN } = parts;

  /** Null: the signal aborted before the page was done. */
  async function scrubPage(objects: readonly ListedObject[], signal: AbortSignal): Promise<number | null> {
    let queued = 0;
    const unnamed = await parts.listUnnamedObjects(objects);
    if (unnamed.length > 0) await parts.checkPlace();
    for (const object of unnamed) {
      if (signal.aborted) return null;
      // A deletion that was completed since the listing has taken its row with it: then the object is gone as well.
      if ((await store.head(object)) === null) continue;
      if (!(await parts.queueOrphan(object))) continue;
      queued += 1;
      logger.warn({ ...object }, "scrub.orphan_queued");
    }
    return queued;
  }

  return async (signal) => {
    let total = 0;
    for (let pages = 0; pages < pagesPerRun && !signal.aborted; pages += 1) {
      const place = await parts.openListing();
      if (place === null) break;
      const { items, nextCursor } = await store.list(place.cursor);
      // By both clocks: the database's may have jumped ahead, and what is being written now is no orphan.
      const beforeMs = Math.min(place.before.getTime(), parts.clock.wallMs() - ORPHAN_AGE_MS);
      const old = items.filter((item) => item.storedAt.getTime() < beforeMs).map((item) => item.key);
      const queued = await scrubPage(old, signal);
      if (queued === null) break;
      total += queued;
      if (!(await parts.advanceListing(place, nextCursor))) break;
    }
    return total;
  };
}
