import type { BinaryStore } from "@keble-scraper/artifact-store";
import type { BlobToVerify, RetireVerdict } from "@keble-scraper/db/commands/artifacts";
import type { Clock, Logger } from "@keble-scraper/service";
import { createMinuteBudget } from "./minute-budget.ts";
import { readObject, type ReadVerdict } from "./read-object.ts";

/** What has been read less than an hour ago is not read again: a small store costs little, and is looked at all the same. */
export const UNREAD_MS = 3_600_000;
/** Rows of a blob are locked for milliseconds: so many looks at them, then the object waits for the next run. */
const RETIRE_TRIES = 3;

/** What reading stored objects again works with. */
export type BlobScrubParts = {
  readonly store: Pick<BinaryStore, "read">;
  /** Throws unless the store is there and is the database's: an empty mount has none of the objects, and lost none. */
  checkPlace(): Promise<void>;
  takeBlob(): Promise<BlobToVerify | null>;
  putBackBlob(blob: BlobToVerify): Promise<void>;
  retireBlob(blob: BlobToVerify, kind: "MISSING" | "DAMAGED"): Promise<RetireVerdict>;
  /** Of this process: another maintenance worker has as much. */
  readonly objectsPerMinute: number;
  readonly bytesPerMinute: number;
  /** How long one run may take. */
  readonly runMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
};

/**
 * Reads stored objects against their hashes, one at a time, longest unread first, until the minute's budget is spent, the
 * run's time is over, all have been read or the signal aborts. An object counts as missing or damaged when it was so
 * twice and the store was the right one in between: then its blob is retired. A store that fails says nothing about an object: the
 * run throws, and that object is read again when its turn comes, so that one which can't be read keeps none back. Returns
 * how many were read.
 */
export function createBlobScrub(parts: BlobScrubParts): (signal: AbortSignal) => Promise<number> {
  const { clock, logger } = parts;
  const budget = createMinuteBudget(parts);

  async function read(blob: BlobToVerify, signal: AbortSignal): Promise<ReadVerdict["verdict"]> {
    const { verdict, bytes } = await readObject(parts.store, blob, signal);
    budget.spend({ objects: 0, bytes });
    return verdict;
  }

  async function retire(blob: BlobToVerify, kind: "MISSING" | "DAMAGED"): Promise<void> {
    const object = { kind, sha256: blob.sha256, generation: blob.generation };
    for (let tries = 0; tries < RETIRE_TRIES; tries += 1) {
      const answer = await parts.retireBlob(blob, kind);
      if (answer.verdict === "RETIRED") {
        logger.error({ ...object, artifacts: answer.artifacts }, "scrub.object_lost");
      }
      if (answer.verdict !== "BUSY") return;
    }
    await parts.putBackBlob(blob);
    logger.warn(object, "scrub.retire_deferred");
  }

  async function readInPlace(blob: BlobToVerify, signal: AbortSignal): Promise<ReadVerdict["verdict"]> {
    try {
      await parts.checkPlace();
    } catch (error) {
      await parts.putBackBlob(blob);
      throw error;
    }
    return read(blob, signal);
  }

  /** False: it was put back, because the signal aborted. */
  async function verify(blob: BlobToVerify, signal: AbortSignal): Promise<boolean> {
    const first = await read(blob, signal);
    if (first === "SOUND") return true;
    // Between the two reads: a place that was away for both of them is away now.
    const second = first === "ABORTED" ? first : await readInPlace(blob, signal);
    if (second === "ABORTED") {
      await parts.putBackBlob(blob);
      return false;
    }
    if (second === "SOUND") {
      logger.warn({ sha256: blob.sha256, generation: blob.generation, first }, "scrub.unconfirmed");
      return true;
    }
    await retire(blob, second);
    return true;
  }

  return async (signal) => {
    const startedAtMs = clock.monotonicMs();
    let verified = 0;
    while (!signal.aborted && clock.monotonicMs() - startedAtMs < parts.runMs && budget.hasRoom()) {
      const blob = await parts.takeBlob();
      if (blob === null) break;
      budget.spend({ objects: 1, bytes: 0 });
      if (await verify(blob, signal)) verified += 1;
    }
    return verified;
  };
}
