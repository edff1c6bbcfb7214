import { formatTime, type Stats } from "@keble-scraper/contract";
import type { EndedInHour } from "@keble-scraper/db";
import type { Clock } from "@keble-scraper/service";

const HOUR_MS = 3_600_000;
/** Whole hours that are shown, beside the one that runs. */
const HOURS = 24;
/** A job that ended just before the hour did may be committed a little later. */
const CLOSED_AFTER_MS = 60_000;
/** What one answer spends on counting; hours it had no time for come with the next one. */
const COUNTING_MS_MAX = 2_000;

type Hours = Stats["endedByHour"];

/**
 * Counts how jobs ended by the hour, the newest first, as far as the time of one answer goes. An hour that is over is
 * counted once in the life of the process; an hour whose count fails ends the answer there.
 */
export function createEndedByHour(parts: {
  count(hour: Date): Promise<EndedInHour>;
  readonly clock: Clock;
}): (now: Date) => Promise<Hours> {
  const closed = new Map<number, EndedInHour>();
  return async (now) => {
    const until = parts.clock.monotonicMs() + COUNTING_MS_MAX;
    const current = Math.floor(now.getTime() / HOUR_MS) * HOUR_MS;
    for (const at of closed.keys()) {
      if (at < current - HOURS * HOUR_MS) closed.delete(at);
    }
    const hours: Hours = [];
    for (let at = current; at >= current - HOURS * HOUR_MS; at -= HOUR_MS) {
      const known = closed.get(at);
      if (known === undefined && parts.clock.monotonicMs() >= until) break;
      const ended = known ?? (await parts.count(new Date(at)).catch(() => null));
      if (ended === null) break;
      if (at + HOUR_MS + CLOSED_AFTER_MS <= now.getTime()) closed.set(at, ended);
      hours.unshift({ hour: formatTime(new Date(at)), ...ended });
    }
    return hours;
  };
}
