import { type Job, isTerminal } from "@keble-scraper/contract";

/** Waits for jobs to end. */
export type JobWaits = {
  /** The job once it is terminal, or as it is after `timeoutMs` or when the signal aborts; null when there is none. */
  until(read: () => Promise<Job | null>, id: string, timeoutMs: number, signal: AbortSignal): Promise<Job | null>;
  /** Jobs that are said to have ended: their waiters read again. */
  wake(ids: readonly string[]): void;
  /** Ends all waits, and those that come after it: each answers with its job as it is. */
  releaseAll(): void;
};

/** Hints are lossy, so a waiter reads again at least this often. */
const REREAD_MS = 1_000;

/** A waiter reads when its job is said to have ended, and once a second besides. */
export function createJobWaits(): JobWaits {
  const waiters = new Map<string, Set<Waiter>>();
  let isReleased = false;
  return {
    async until(read, id, timeoutMs, signal) {
      const endsAt = performance.now() + timeoutMs;
      const waiter = createWaiter();
      const others = waiters.get(id) ?? new Set();
      waiters.set(id, others.add(waiter));
      signal.addEventListener("abort", waiter.wake);
      try {
        for (;;) {
          waiter.rearm();
          const job = await read();
          const remainingMs = endsAt - performance.now();
          if (job === null || isTerminal(job.status) || remainingMs <= 0 || signal.aborted || isReleased) return job;
          await waiter.sleep(Math.min(remainingMs, REREAD_MS));
        }
      } finally {
        signal.removeEventListener("abort", waiter.wake);
        others.delete(waiter);
        if (others.size === 0) waiters.delete(id);
      }
    },
    wake(ids) {
      for (const id of ids) {
        for (const waiter of waiters.get(id) ?? []) waiter.wake();
      }
    },
    releaseAll() {
      isReleased = true;
      for (const waiter of [...waiters.values()].flatMap((others) => [...others])) waiter.wake();
    },
  };
}

type Waiter = { rearm(): void; sleep(ms: number): Promise<void>; wake(): void };

/** A wake that comes while the job is being read makes the sleep after it return at once. */
function createWaiter(): Waiter {
  let isWoken = false;
  let end: (() => void) | null = null;
  return {
    rearm() {
      isWoken = false;
    },
    sleep(ms) {
      if (isWoken) return Promise.resolve();
      return new Promise((resolve) => {
        const timer = setTimeout(done, ms);
        function done() {
          clearTimeout(timer);
          end = null;
          resolve();
        }
        end = done;
      });
    },
    wake() {
      isWoken = true;
      end?.();
    },
  };
}
