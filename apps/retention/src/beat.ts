import {
  type Bell,
  type Clock,
  createRepeater,
  type Logger,
  type Repeater,
  type Signals,
} from "@keble-scraper/service";

/** Rings maintenance at once and then every interval. It carries nothing: two beats, or none, are harmless. */
export function createBeatLoop(parts: {
  readonly bell: Pick<Bell, "ring">;
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly signals: Signals;
  readonly logger: Logger;
}): Repeater {
  return createRepeater({
    name: "beat",
    run() {
      parts.bell.ring("maintenance", {});
      return Promise.resolve(parts.intervalMs);
    },
    retryMs: parts.intervalMs,
    clock: parts.clock,
    signals: parts.signals,
    logger: parts.logger,
  });
}
