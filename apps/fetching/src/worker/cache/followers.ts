import type { WaitingJob } from "@keble-scraper/db/commands/fetching";
import type { Logger } from "@keble-scraper/service";
import type { ClaimedJob } from "../claimed-job.ts";

/**
 * The jobs that this process put back because another job was fetching what they want. They are due within a second anyhow,
 * in whichever process; this one wakes those it knows of as soon as its own fetch ends.
 */
export type Followers = {
  /** The job was put back to wait. */
  wait(job: ClaimedJob): void;
  /** The job is in hand: it waits no more. */
  came(job: ClaimedJob): void;
  /** A job of the key has ended its turn. ANSWERED wakes all who wait for it; NOT_ANSWERED the one whose turn it is next. */
  wake(key: string | null, how: "ANSWERED" | "NOT_ANSWERED"): void;
};

/** Jobs of one statement; the others come by themselves. */
const WAKES_MAX = 1_000;
/** Keys and jobs that are remembered; past it the oldest key's jobs come by themselves. */
const JOBS_MAX = 20_000;

/** Remembers ids alone, within a bound. */
export function createFollowers(options: {
  wake(jobs: readonly WaitingJob[]): Promise<unknown>;
  /** Told after they were woken. */
  onWoken(): void;
  readonly logger: Logger;
}): Followers {
  const waiting = new Map<string, Map<string, WaitingJob>>();
  let size = 0;

  function forget(key: string, id: string): void {
    const jobs = waiting.get(key);
    if (jobs?.delete(id) !== true) return;
    size -= 1;
    if (jobs.size === 0) waiting.delete(key);
  }

  function makeRoom(): void {
    const [oldest] = waiting;
    if (size < JOBS_MAX || oldest === undefined) return;
    size -= oldest[1].size;
    waiting.delete(oldest[0]);
  }

  return {
    wait({ cacheKey, id, attemptNumber }) {
      if (cacheKey === null) return;
      makeRoom();
      const jobs = waiting.get(cacheKey) ?? new Map<string, WaitingJob>();
      waiting.set(cacheKey, jobs);
      if (!jobs.has(id)) size += 1;
      jobs.set(id, { id, attemptNumber: attemptNumber - 1 });
    },
    came({ cacheKey, id }) {
      if (cacheKey !== null) forget(cacheKey, id);
    },
    wake(key, how) {
      if (key === null) return;
      const jobs = [...(waiting.get(key)?.values() ?? [])].slice(0, how === "ANSWERED" ? WAKES_MAX : 1);
      if (jobs.length === 0) return;
      for (const { id } of jobs) forget(key, id);
      options.wake(jobs).then(
        () => {
          options.onWoken();
        },
        (error: unknown) => {
          options.logger.warn({ err: error }, "followers.not_woken");
        },
      );
    },
  };
}
