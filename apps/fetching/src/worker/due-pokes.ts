import type { Component } from "@keble-scraper/service";

/** Looks for work when a job that this worker put back is due, rather than at the next poll. */
export type DuePokes = Component & {
  /** A job is due in so many milliseconds. What is further away than a poll is the poll's. */
  in(ms: number): void;
};

/** Jobs that are due within it are one look. */
const APART_MS = 50;

/** At most one timer for each 50 ms until the next poll, however many jobs are put back. */
export function createDuePokes(options: { poke(): void; readonly pollMs: number; monotonicMs(): number }): DuePokes {
  const timers = new Map<number, NodeJS.Timeout>();
  let isStopped = false;

  return {
    name: "due pokes",
    start: () => Promise.resolve(),
    stop() {
      isStopped = true;
      for (const timer of timers.values()) clearTimeout(timer);
      timers.clear();
      return Promise.resolve();
    },
    in(ms) {
      if (isStopped || ms >= options.pollMs) return;
      const nowMs = options.monotonicMs();
      // Rounded up: a look that comes before the job is due finds nothing.
      const look = Math.floor((nowMs + ms) / APART_MS) + 1;
      if (timers.has(look)) return;
      const timer = setTimeout(
        () => {
          timers.delete(look);
          options.poke();
        },
        look * APART_MS - nowMs,
      );
      timers.set(look, timer);
    },
  };
}
