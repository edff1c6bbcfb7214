import type { BinaryStore } from "@keble-scraper/artifact-store";
import type { Clock } from "@keble-scraper/service";
import type { Step } from "../maintenance/tick.ts";

const HOUR_MS = 3_600_000;
/** Far past the longest attempt: what is this old, nobody is writing any more. */
const STRAY_AGE_MS = 24 * HOUR_MS;

/**
 * Removes what broken-off writes left in the store a day ago or earlier: with the first round of a process, then once an
 * hour. After a fault the next round tries again.
 */
export function removeStraysStep(parts: {
  readonly store: Pick<BinaryStore, "removeStrays">;
  readonly clock: Clock;
}): Step {
  const { clock, store } = parts;
  let dueMs = Number.NEGATIVE_INFINITY;
  return {
    name: "straysRemoved",
    async run(signal) {
      if (clock.monotonicMs() < dueMs) return 0;
      const removed = await store.removeStrays(new Date(clock.wallMs() - STRAY_AGE_MS), signal);
      if (!signal.aborted) dueMs = clock.monotonicMs() + HOUR_MS;
      return removed;
    },
  };
}
