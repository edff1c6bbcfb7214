import type { WaitingJob } from "@keble-scraper/db/commands/fetching";
import type { Logger } from "@keble-scraper/service";
import type { ClaimedJob } from "../claimed-job.ts";
import type { LookPace } from "./look-pace.ts";

/**
 * The jobs that this process put back because another job was fetching what they want. They look again by themselves, in
 * whichever process; this one wakes those it knows of as soon as its own fetch ends, or one of them found the answer of another's.
 */
export type Followers = {
  /** The job was put back to wait. */
  wait(job: ClaimedJob): void;
  /** The job is in hand: it waits no more. Returns whether it did, here. */
  came(job: ClaimedJob): boolean;
  /** A job of the key has ended its turn. ANSWERED wakes all who wait for it; NOT_ANSWERED the one whose turn it is next. */
  wake(key: string | null, how: "ANSWERED" | "NOT_ANSWERED"): void;
};

/** Jobs of one statement. */
const WAKES_MAX = 1_000;
/** Keys and jobs that are remembered; past it the oldest key's jobs come by themselves. */
const JOBS_MAX = 20_000;

/** Remembers ids alone, within a bound. */
export function createFollowers(options: {
  wake(jobs: readonly WaitingJob[]): Promise<unknown>;
  /** Told after they were woken. */
  onWoken(): void;
  readonly pace: Pick<LookPace, "giveBack">;
  readonly logger: Logger;
}): Followers {
  const waiting = new Map<string, Map<string, Follower>>();
  let size = 0;

  function forget(key: string, id: string): boolean {
    const jobs = waiting.get(key);
    if (jobs?.delete(id) !== true) return false;
    size -= 1;
    if (jobs.size === 0) waiting.delete(key);
    return true;
  }

  async function wakeAll(jobs: readonly Follower[]): Promise<void> {
    for (let from = 0; from < jobs.length; from += WAKES_MAX) {
      await options.wake(jobs.slice(from, from + WAKES_MAX));
      options.onWoken();
    }
  }

  function makeRoom(): void {
    const [oldest] = waiting;
    if (size < JOBS_MAX || oldest === undefined) return;
    size -= oldest[1].size;
    waiting.delete(oldest[0]);
  }

  return {
    wait({ cacheKey, id, callerId, attemptNumber }) {
      if (cacheKey === null) return;
      makeRoom();
      const jobs = waiting.get(cacheKey) ?? new Map<string, Follower>();
      waiting.set(cacheKey, jobs);
      if (!jobs.has(id)) size += 1;
      jobs.set(id, { id, callerId, attemptNumber: attemptNumber - 1 });
    },
    came({ cacheKey, id }) {
      return cacheKey !== null && forget(cacheKey, id);
    },
    wake(key, how) {
      if (key === null) return;
      const jobs = [...(waiting.get(key)?.values() ?? [])].slice(0, how === "ANSWERED" ? JOBS_MAX : 1);
      for (const { id, callerId } of jobs) {
        forget(key, id);
        options.pace.giveBack(callerId, 1);
      }
      wakeAll(jobs).catch((error: unknown) => {
        options.logger.warn({ err: error }, "followers.not_woken");
      });
    },
  };
}

type Follower = WaitingJob & { readonly callerId: string };
