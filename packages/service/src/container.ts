import type { Component } from "./component.ts";
import type { HealthCheck } from "./health.ts";
import type { Logger } from "./logger.ts";

/**
 * A process kind, put together. `start` starts its parts in order; when one fails, those before it are stopped and its
 * fault is thrown. `stop` stops them in reverse order, may be called at any time and any number of times, shares one
 * promise, and always ends: a part that overruns is logged and left. A stopped container does not start again.
 */
export type Container = {
  readonly name: string;
  start(): Promise<void>;
  /** `graceMs` is how long work in flight may go on; zero ends it at once; absent means the container's own. */
  stop(graceMs?: number): Promise<void>;
  readonly checks: readonly HealthCheck[];
};

/** What a part may take beyond the grace for its last writes and for closing, before the container goes on without it. */
const STOP_OVERRUN_MS = 5_000;

/** Puts parts together, in start order. `drainGraceMs` is the grace of a `stop` that names none. */
export function createContainer(options: {
  readonly name: string;
  readonly components: readonly Component[];
  readonly checks?: readonly HealthCheck[];
  readonly logger: Logger;
  readonly drainGraceMs: number;
  /** What a part may overrun its deadline by, in milliseconds; 5,000 when absent. */
  readonly stopOverrunMs?: number;
}): Container {
  const { name, components, logger } = options;
  const stopOverrunMs = options.stopOverrunMs ?? STOP_OVERRUN_MS;
  const begun: Component[] = [];
  const abort = new AbortController();
  let starting: Promise<void> | undefined;
  let stopping: Promise<void> | undefined;

  async function startAll(): Promise<void> {
    try {
      for (const component of components) {
        abort.signal.throwIfAborted();
        await component.start(abort.signal);
        begun.push(component);
      }
      abort.signal.throwIfAborted();
      logger.info({ container: name }, "container.started");
    } catch (error) {
      logger.error({ container: name, err: error }, "container.start_failed");
      await stopBegun(performance.now());
      throw error;
    }
  }

  async function stopBegun(deadline: number): Promise<void> {
    for (let component = begun.pop(); component; component = begun.pop()) {
      await stopOne(component, deadline);
    }
  }

  async function stopOne(component: Component, deadline: number): Promise<void> {
    const patienceMs = Math.max(0, deadline - performance.now()) + stopOverrunMs;
    let timer: NodeJS.Timeout | undefined;
    const overrun = new Promise<"overrun">((resolve) => {
      timer = setTimeout(() => resolve("overrun"), patienceMs);
    });
    try {
      const end = await Promise.race([component.stop(deadline), overrun]);
      if (end === "overrun") {
        logger.error({ container: name, component: component.name }, "component.stop_overran");
      }
    } catch (error) {
      logger.error({ container: name, component: component.name, err: error }, "component.stop_failed");
    } finally {
      clearTimeout(timer);
    }
  }

  async function stopAll(graceMs: number): Promise<void> {
    const deadline = performance.now() + graceMs;
    abort.abort(new Error("the container is stopping"));
    await starting?.catch(() => undefined);
    await stopBegun(deadline);
    logger.info({ container: name }, "container.stopped");
  }

  return {
    name,
    checks: options.checks ?? [],
    start() {
      starting ??= startAll();
      return starting;
    },
    stop(graceMs = options.drainGraceMs) {
      stopping ??= stopAll(graceMs);
      return stopping;
    },
  };
}
