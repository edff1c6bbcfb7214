import type { PinnedClient } from "./pinned-client.ts";
import type { Stop } from "./stop.ts";

/** The attempts a transport is running, and how they and its connections end. */
export type RunningAttempts = {
  /** Ends `stop` when `attempt` has ended. Once the transport is closed, an attempt is aborted as it starts. */
  track<T>(stop: Stop, attempt: Promise<T>): Promise<T>;
  /** Lets running attempts finish until `deadline` (monotonic milliseconds), aborts the rest, closes every socket. Idempotent. */
  close(deadline: number): Promise<void>;
};

/** The attempts that run over `client`, which is closed with them. */
export function createRunningAttempts(client: PinnedClient): RunningAttempts {
  const running = new Map<Stop, Promise<unknown>>();
  let closing: Promise<void> | undefined;

  const shutDown = async (deadline: number): Promise<void> => {
    client.drain();
    const graceMs = Math.max(0, deadline - performance.now());
    const timer = setTimeout(() => {
      for (const stop of running.keys()) stop.abort();
    }, graceMs);
    await Promise.allSettled(running.values());
    clearTimeout(timer);
    await client.destroy();
  };

  return {
    async track(stop, attempt) {
      if (closing !== undefined) stop.abort();
      running.set(stop, attempt);
      try {
        return await attempt;
      } finally {
        running.delete(stop);
        stop.end();
      }
    },
    close(deadline) {
      closing ??= shutDown(deadline);
      return closing;
    },
  };
}
