import { StoreUnavailable } from "@keble-scraper/artifact-store";
import { pause } from "@keble-scraper/service";

/** Waits between two tries, doubling from the first to the last, in milliseconds. */
const FIRST_WAIT_MS = 500;
const LAST_WAIT_MS = 10_000;

/** Tries a put again for as long as the store is away and the run may go on. Null: the run was told to end. */
export type UntilStored = <T>(put: () => Promise<T>, signal: AbortSignal) => Promise<T | null>;

/**
 * A store that is down, full or slow costs a job time, no attempt: what was fetched waits in the spool, under the lease that is
 * renewed meanwhile. Its slot stays taken, so a worker fetches no more than it can keep. `onAway` is told once a put.
 */
export function createUntilStored(options: { random(): number; onAway(error: StoreUnavailable): void }): UntilStored {
  return async (put, signal) => {
    for (let tries = 0; ; tries += 1) {
      try {
        return await put();
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || LASTING.has(error.code)) throw error;
        if (tries === 0) options.onAway(error);
      }
      const waitMs = Math.min(FIRST_WAIT_MS * 2 ** tries, LAST_WAIT_MS);
      await pause(waitMs / 2 + (options.random() * waitMs) / 2, signal);
      if (signal.aborted) return null;
    }
  };
}

/** The spooled bytes are not what was fetched; the process has closed its store. */
const LASTING: ReadonlySet<string> = new Set(["SPOOL_DAMAGED", "CLOSED"]);
