import { FLIGHT_WAIT_SECONDS_MAX } from "@keble-scraper/db/commands/fetching";

/** How soon the jobs of each caller look again that wait for another's fetch. */
export type LookPace = {
  /** Books the caller's next look, and says in how many milliseconds it is: 1,000, and later the more of its jobs wait. */
  nextInMs(callerId: string): number;
  /** So many of the caller's looks will not be needed: the next ones are sooner. */
  giveBack(callerId: string, looks: number): void;
};

const SOONEST_MS = 1_000;
const LATEST_MS = FLIGHT_WAIT_SECONDS_MAX * 1_000;
/**
 * Looks of one caller, per process: 200 a second. Without a bound, 5,000 waiting jobs made 3,900 claims and releases a second and kept
 * half a core of the worker busy; as many that wait as this notice nothing of it.
 */
const APART_MS = 5;
/** Callers that are remembered before those whose looks are all over are forgotten. */
const CALLERS_MAX = 1_000;

/** Remembers one time per caller. A crowd slows down its own caller's looks, nobody else's. */
export function createLookPace(monotonicMs: () => number): LookPace {
  const booked = new Map<string, number>();
  return {
    nextInMs(callerId) {
      const nowMs = monotonicMs();
      if (booked.size >= CALLERS_MAX) {
        for (const [caller, atMs] of booked) if (atMs <= nowMs) booked.delete(caller);
      }
      // The first second is worth as many looks as it has room for, however they come.
      const atMs = Math.min(Math.max(nowMs, booked.get(callerId) ?? 0) + APART_MS, nowMs + LATEST_MS);
      booked.set(callerId, atMs);
      return Math.max(SOONEST_MS, Math.ceil(atMs - nowMs));
    },
    giveBack(callerId, looks) {
      const atMs = booked.get(callerId);
      if (atMs !== undefined) booked.set(callerId, atMs - looks * APART_MS);
    },
  };
}
