import type { Clock } from "./clock.ts";
import type { Component } from "./component.ts";
import type { Logger } from "./logger.ts";
import type { Signals } from "./signals.ts";

/** Does one thing again and again, one at a time. */
export type Repeater = Component & {
  /** Asks for a run soon. Never throws, never waits; any number of asks during a run make one more. */
  wake(): void;
};

/** A wake that comes right after a run waits this long, so that a flood of bells is no flood of work. */
const SPACING_MS = 100;

/**
 * Makes a repeater. `run` answers how many milliseconds it wants until its next run; one that throws is logged once per
 * change of state and run again after `retryMs`. Its signal aborts when the repeater stops, and it ends soon then; stop
 * waits for it until the deadline.
 */
export function createRepeater(options: {
  readonly name: string;
  run(signal: AbortSignal): Promise<number>;
  readonly retryMs: number;
  readonly clock: Clock;
  readonly signals: Signals;
  readonly logger: Logger;
}): Repeater {
  const { name, clock, signals, logger } = options;
  let stopper = new AbortController();
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isStarted = false;
  let isWanted = false;
  let isFailing = false;
  let endedAtMs = Number.NEGATIVE_INFINITY;

  function schedule(delayMs: number): void {
    clearTimeout(timer);
    timer = setTimeout(begin, delayMs);
  }

  function begin(): void {
    clearTimeout(timer);
    timer = undefined;
    isWanted = false;
    running = runOnce(stopper.signal).then((delayMs) => {
      running = undefined;
      endedAtMs = clock.monotonicMs();
      if (isStarted) {
        schedule(isWanted ? Math.min(SPACING_MS, delayMs) : delayMs);
      }
    });
  }

  async function runOnce(signal: AbortSignal): Promise<number> {
    try {
      const delayMs = await options.run(signal);
      if (isFailing) {
        isFailing = false;
        logger.info({ repeater: name }, "run.recovered");
      }
      await signals.reach(`${name}.ran`);
      return delayMs;
    } catch (error) {
      if (!isFailing) {
        isFailing = true;
        logger.error({ repeater: name, err: error }, "run.failed");
      }
      await signals.reach(`${name}.failed`, error);
      return options.retryMs;
    }
  }

  return {
    name,
    wake() {
      isWanted = true;
      if (isStarted && !running) {
        schedule(Math.max(0, SPACING_MS - (clock.monotonicMs() - endedAtMs)));
      }
    },
    start(signal) {
      signal.throwIfAborted();
      if (!isStarted) {
        isStarted = true;
        stopper = new AbortController();
        begin();
      }
      return Promise.resolve();
    },
    async stop(deadline) {
      isStarted = false;
      clearTimeout(timer);
      timer = undefined;
      stopper.abort();
      if (!running) {
        return;
      }
      let late: NodeJS.Timeout | undefined;
      const patience = new Promise<void>((resolve) => {
        late = setTimeout(resolve, Math.max(0, deadline - performance.now()));
      });
      await Promise.race([running, patience]);
      clearTimeout(late);
    },
  };
}
