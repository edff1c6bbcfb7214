import type { Clock } from "@keble-scraper/service";
import { remember } from "../remember.ts";

/** What is known of hosts that want to be left alone. */
export type Holds = {
  /**
   * How long the host is held, in milliseconds, 0 when it is not; undefined when neither this process nor the caller, at
   * `checkedAtMs` (monotonic), has looked within 50 ms.
   */
  peek(hostKey: string, checkedAtMs: number): number | undefined;
  /** Looks, together with whoever else wants to look now. Throws what the query throws. */
  look(hostKey: string): Promise<number>;
  /** Holds a host at once, for this process: a target has just said so. */
  learn(hostKey: string, ms: number): void;
};

/** How old a look may be when a request is sent. */
const FRESH_MS = 50;
/** Hosts remembered per process, of each kind. */
const HOSTS_MAX = 10_000;
/** Hosts asked for in one query. */
const BATCH_MAX = 500;

/**
 * Reads holds in batches: one query at a time, each for all hosts that were asked for since the last one began.
 * `listHostHolds` answers how long each held host is still held, in milliseconds; others are absent.
 */
export function createHolds(parts: {
  listHostHolds(hostKeys: readonly string[]): Promise<ReadonlyMap<string, number>>;
  readonly clock: Clock;
}): Holds {
  const { clock } = parts;
  /** Until when (monotonic) a host is held, by what this process was told. */
  const learned = new Map<string, number>();
  /** What the last looks found; kept for as long as they are fresh. */
  const looked = new Map<string, { readonly atMs: number; readonly heldUntilMs: number }>();
  let asked = new Map<string, Waiter>();
  let isAsking = false;

  function heldMs(hostKey: string, nowMs: number): number {
    const untilMs = Math.max(learned.get(hostKey) ?? 0, looked.get(hostKey)?.heldUntilMs ?? 0);
    return Math.max(0, untilMs - nowMs);
  }

  async function askAll(): Promise<void> {
    isAsking = true;
    // Whoever asks in this turn of the event loop is in the same query.
    await new Promise((resolve) => setImmediate(resolve));
    while (asked.size > 0) {
      const batch = [...asked].slice(0, BATCH_MAX);
      asked = new Map([...asked].slice(BATCH_MAX));
      await askBatch(batch);
    }
    isAsking = false;
  }

  async function askBatch(batch: readonly (readonly [string, Waiter])[]): Promise<void> {
    const atMs = clock.monotonicMs();
    try {
      const holds = await parts.listHostHolds(batch.map(([hostKey]) => hostKey));
      for (const [hostKey, waiter] of batch) {
        const ms = holds.get(hostKey) ?? 0;
        remember(looked, hostKey, { atMs, heldUntilMs: ms > 0 ? clock.monotonicMs() + ms : 0 }, HOSTS_MAX);
        waiter.resolve(heldMs(hostKey, clock.monotonicMs()));
      }
    } catch (error) {
      for (const [, waiter] of batch) waiter.reject(error);
    }
  }

  return {
    peek(hostKey, checkedAtMs) {
      const nowMs = clock.monotonicMs();
      const newestMs = Math.max(checkedAtMs, looked.get(hostKey)?.atMs ?? -Infinity);
      const ms = heldMs(hostKey, nowMs);
      return ms > 0 || nowMs - newestMs <= FRESH_MS ? ms : undefined;
    },
    look(hostKey) {
      const waiter = asked.get(hostKey) ?? createWaiter();
      asked.set(hostKey, waiter);
      if (!isAsking) void askAll();
      return waiter.promise;
    },
    learn(hostKey, ms) {
      const nowMs = clock.monotonicMs();
      if (ms <= 0) return;
      remember(learned, hostKey, Math.max(learned.get(hostKey) ?? 0, nowMs + ms), HOSTS_MAX);
    },
  };
}

type Waiter = {
  readonly promise: Promise<number>;
  resolve(ms: number): void;
  reject(error: unknown): void;
};

function createWaiter(): Waiter {
  let resolve: (ms: number) => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<number>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}
