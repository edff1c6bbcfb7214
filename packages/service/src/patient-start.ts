import type { Component } from "./component.ts";
import type { Logger } from "./logger.ts";
import { pause } from "./timeout.ts";

/** Waits between two tries, doubling from the first to the last, in milliseconds. */
const FIRST_WAIT_MS = 250;
const LAST_WAIT_MS = 5_000;

/**
 * The same part, whose start is tried again for as long as what it depends on is away: nothing behind it in the container starts
 * before it has. It gives up when it is told to stop, and at once on any error that is none of a dependency's. The
 * wait is logged when it begins and when it is over.
 */
export function startPatiently(
  component: Component,
  options: {
    /** Whether an error says that a dependency did not answer; anything else ends the start. */
    isAway(error: unknown): boolean;
    readonly logger: Logger;
    /** Between 0 and 1; spreads the tries of many processes. */
    random?(): number;
  },
): Component {
  const { isAway, logger, random = Math.random } = options;
  return {
    name: component.name,
    stop: (deadline) => component.stop(deadline),
    async start(signal) {
      for (let tries = 0; ; tries += 1) {
        try {
          await component.start(signal);
          if (tries > 0) logger.info({ component: component.name }, "start.resumed");
          return;
        } catch (error) {
          if (!isAway(error)) throw error;
          if (tries === 0) logger.error({ component: component.name, err: error }, "start.waiting");
        }
        const waitMs = Math.min(FIRST_WAIT_MS * 2 ** tries, LAST_WAIT_MS);
        await pause(waitMs / 2 + (random() * waitMs) / 2, signal);
        signal.throwIfAborted();
      }
    },
  };
}
