import type { Logger } from "@keble-scraper/service";

/** One piece of a tick. `run` answers how many rows or rings it made. */
export type Step = { readonly name: string; run(signal: AbortSignal): Promise<number> };

/**
 * Runs all steps in order. One that throws harms no other: it is logged once per change of state and tried again with the
 * next tick. A tick that did something is one line of log; a signal that aborts ends it after its step.
 */
export function createTick(steps: readonly Step[], logger: Logger): (signal: AbortSignal) => Promise<void> {
  const failing = new Set<string>();

  async function runStep(step: Step, signal: AbortSignal): Promise<number> {
    try {
      const count = await step.run(signal);
      if (failing.delete(step.name)) {
        logger.info({ step: step.name }, "maintenance.step_recovered");
      }
      return count;
    } catch (error) {
      if (!failing.has(step.name)) {
        failing.add(step.name);
        logger.error({ step: step.name, err: error }, "maintenance.step_failed");
      }
      return 0;
    }
  }

  return async (signal) => {
    const startedAt = performance.now();
    const counts: Record<string, number> = {};
    let sum = 0;
    for (const step of steps) {
      if (signal.aborted) {
        break;
      }
      const count = await runStep(step, signal);
      counts[step.name] = count;
      sum += count;
    }
    const line = { ...counts, totalMs: Math.round(performance.now() - startedAt) };
    logger[sum > 0 ? "info" : "debug"](line, "maintenance.ticked");
  };
}
