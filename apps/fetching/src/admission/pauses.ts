import type { Hop } from "@keble-scraper/egress";

/** Waits that end when their attempt is stopped. */
export type Pauses = {
  /**
   * Waits `ms`, or until the stop comes (false). `wake` is given what ends the wait early and well; it returns how to take
   * that off again.
   */
  wait(ms: number, stop: Hop["stop"], wake?: (end: () => void) => () => void): Promise<boolean>;
  /** Ends every wait as if stopped; later ones end at once. */
  close(): void;
};

/** Makes the waits of one process. */
export function createPauses(): Pauses {
  const ends = new Set<() => void>();
  let isClosed = false;

  return {
    wait(ms, stop, wake) {
      if (isClosed || stop.reason !== null) return Promise.resolve(false);
      return new Promise((resolve) => {
        const end = (isOver: boolean) => {
          clearTimeout(timer);
          ends.delete(stopped);
          offStop();
          offWake?.();
          resolve(isOver);
        };
        const stopped = () => end(false);
        const timer = setTimeout(() => end(true), Math.max(0, Math.ceil(ms)));
        ends.add(stopped);
        const offWake = wake?.(() => end(true));
        const offStop = stop.onStop(stopped);
      });
    },
    close() {
      isClosed = true;
      for (const end of ends) end();
    },
  };
}
