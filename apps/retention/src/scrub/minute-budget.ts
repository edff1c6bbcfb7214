import type { Clock } from "@keble-scraper/service";

/** What may be read in a minute, and has been. */
export type MinuteBudget = {
  /** Whether another object may be read in the minute that runs. */
  hasRoom(): boolean;
  /** Counts what was read: a read that went over the bytes was the minute's last. */
  spend(read: { readonly objects: number; readonly bytes: number }): void;
};

const MINUTE_MS = 60_000;

/** A budget of this process: objects 0 means that nothing is ever read. A minute begins with its first look. */
export function createMinuteBudget(options: {
  readonly objectsPerMinute: number;
  readonly bytesPerMinute: number;
  readonly clock: Pick<Clock, "monotonicMs">;
}): MinuteBudget {
  let beganAtMs = Number.NEGATIVE_INFINITY;
  let objects = 0;
  let bytes = 0;
  return {
    hasRoom() {
      const nowMs = options.clock.monotonicMs();
      if (nowMs - beganAtMs >= MINUTE_MS) {
        beganAtMs = nowMs;
        objects = 0;
        bytes = 0;
      }
      return objects < options.objectsPerMinute && bytes < options.bytesPerMinute;
    },
    spend(read) {
      objects += read.objects;
      bytes += read.bytes;
    },
  };
}
