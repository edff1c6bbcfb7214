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

/** Defers in batches until one comes back short. Failures are logged: the claim itself never takes such a job. */
export function createDeferrals(options: {
  defer(limit: number): Promise<number>;
  readonly logger: Logger;
}): Deferrals {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let isStopped = false;

  async function look(): Promise<void> {
    try {
      while (!isStopped && (await options.defer(BATCH_JOBS)) >= BATCH_JOBS);
    } catch (error) {
      options.logger.warn({ err: error }, "deferral.failed");
    }
  }

  return {
    name: "deferrals",
    start: () => Promise.resolve(),
    stop() {
      isStopped = true;
      clearTimeout(timer);
      return running;
    },
    poke() {
      if (isStopped) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        running = look();
      }, GATHER_MS);
    },
  };
}
