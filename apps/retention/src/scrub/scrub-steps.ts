import type { BinaryStore, Fence } from "@keble-scraper/artifact-store";
import type { Sql } from "@keble-scraper/db";
import {
  advanceListing,
  listUnnamedObjects,
  openListing,
  putBackBlob,
  queueOrphan,
  retireBlob,
  takeBlobToVerify,
} from "@keble-scraper/db/commands/artifacts";
import type { Clock, Logger } from "@keble-scraper/service";
import type { Step } from "../maintenance/tick.ts";
import type { RetentionSettings } from "../settings.ts";
import { createBlobScrub, UNREAD_MS } from "./create-blob-scrub.ts";
import { createListingScrub, ORPHAN_AGE_MS, PASS_EVERY_MS } from "./create-listing-scrub.ts";

/** What the scrub works with. The store is open; the fence has let this process start. */
export type ScrubParts = {
  readonly settings: Pick<RetentionSettings, "artifacts" | "retention" | "timings">;
  readonly sql: Sql;
  readonly store: Pick<BinaryStore, "list" | "head" | "read">;
  readonly fence: Pick<Fence, "start">;
  readonly clock: Clock;
  readonly logger: Logger;
};

/** Both directions of the scrub: objects that no row names, and rows whose objects are gone or not their hash's. */
export function scrubSteps({ settings, sql, store, fence, clock, logger }: ScrubParts): readonly Step[] {
  const { downloadUrlMs: urlMs, scrub } = settings.artifacts;
  const { auditDays: auditRetentionDays } = settings.retention;
  // The fence again: it compares the store's own mark with the database's row, and changes nothing.
  const checkPlace = () => fence.start(NEVER);
  const scrubListing = createListingScrub({
    store,
    checkPlace,
    openListing: () => openListing(sql, { everyMs: PASS_EVERY_MS, ageMs: ORPHAN_AGE_MS }),
    advanceListing: (from, next) => advanceListing(sql, from, next),
    listUnnamedObjects: (objects) => listUnnamedObjects(sql, objects),
    queueOrphan: (object) => queueOrphan(sql, object, auditRetentionDays),
    clock,
    logger,
  });
  const scrubBlobs = createBlobScrub({
    store,
    checkPlace,
    takeBlob: () => takeBlobToVerify(sql, UNREAD_MS),
    putBackBlob: (blob) => putBackBlob(sql, blob),
    retireBlob: (blob, kind) => retireBlob(sql, blob, { kind, urlMs, auditRetentionDays }),
    ...scrub,
    runMs: settings.timings.maintenanceMs,
    clock,
    logger,
  });
  return [
    { name: "orphansQueued", run: scrubListing },
    { name: "objectsVerified", run: scrubBlobs },
  ];
}

const NEVER = new AbortController().signal;
