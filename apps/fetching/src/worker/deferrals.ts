import type { Component, Logger } from "@keble-scraper/service";

/** Moves the due times of jobs that can't run for now, so that claims need not step over them. */
export type Deferrals = Component & {
  /** Something was held or shut: look soon. */
  poke(): void;
};

/** Jobs of one statement. */
const BATCH_JOBS = 1_000;
/** Pokes within it are one look. What a look misses, maintenance finds. */
const GATHER_MS = 250;
/** A look reads what every caller has due: the next one waits so many times as long as it took. */
const REST = 4;

/**
 * Defers in batches until one comes back short, one look at a time. Failures are logged: the claim itself never takes such a
 * job.
 */
export function createDeferrals(options: {
  defer(limit: number): Promise<number>;
  monotonicMs(): number;
  readonly logger: Logger;
}): Deferrals {
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let pokes = 0;
  let restUntilMs = 0;
  let isStopped = false;

  async function look(): Promise<void> {
    const startedAtMs = options.monotonicMs();
    const seen = pokes;
    try {
      while (!isStopped && (await options.defer(BATCH_JOBS)) >= BATCH_JOBS);
    } catch (error) {
      options.logger.warn({ err: error }, "deferral.failed");
    }
    const endedAtMs = options.monotonicMs();
    restUntilMs = endedAtMs + REST * (endedAtMs - startedAtMs);
    looking = undefined;
    if (pokes > seen) poke();
  }

  function poke(): void {
    pokes += 1;
    if (isStopped || looking !== undefined) return;
    timer ??= setTimeout(
      () => {
        timer = undefined;
        looking = look();
      },
      Math.max(GATHER_MS, restUntilMs - options.monotonicMs()),
    );
  }

  return {
    name: "deferrals",
    start: () => Promise.resolve(),
    stop() {
      isStopped = true;
      clearTimeout(timer);
      return looking ?? Promise.resolve();
    },
    poke,
  };
}
