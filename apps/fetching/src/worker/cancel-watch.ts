import type { Component, Logger } from "@keble-scraper/service";
import type { ClaimedJob } from "./claimed-job.ts";

/** How often a worker looks whether what it runs is still its own: a cancelled job's socket closes within 3 s. */
const LOOK_MS = 2_000;

/**
 * The floor under the lossy cancel hint: asks for the tokens of what runs every 2 s, and aborts what is no longer held.
 * A look that fails is skipped; the leases' own renewals go on besides.
 */
export function createCancelWatch(options: {
  running(): readonly ClaimedJob[];
  held(jobs: readonly ClaimedJob[]): Promise<ReadonlySet<string>>;
  abort(tokens: ReadonlySet<string>): void;
  readonly logger: Logger;
}): Component {
  let timer: NodeJS.Timeout | null = null;
  let isStopped = false;

  async function look(): Promise<void> {
    const jobs = options.running();
    if (jobs.length > 0) {
      try {
        const held = await options.held(jobs);
        // By token: the job may have been settled and claimed again here while the answer was on its way.
        const lost = jobs.filter((job) => !held.has(job.token)).map((job) => job.token);
        if (lost.length > 0) options.abort(new Set(lost));
      } catch (error) {
        options.logger.warn({ err: error }, "cancel_watch.look_failed");
      }
    }
    arm();
  }

  function arm(): void {
    if (!isStopped) timer = setTimeout(() => void look(), LOOK_MS);
  }

  return {
    name: "cancel watch",
    start() {
      arm();
      return Promise.resolve();
    },
    stop() {
      isStopped = true;
      if (timer !== null) clearTimeout(timer);
      return Promise.resolve();
    },
  };
}
