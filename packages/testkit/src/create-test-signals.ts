/** What a point was reached with, in the order of arrival. */
type Arrival = { readonly point: string; readonly detail: unknown };
type Match = (detail: unknown) => boolean;

/** A point that stops its callers until it is released. Disposing releases. */
export type Hold = Disposable & {
  /** Resolves with the detail of the first caller that is stopped here. */
  readonly held: Promise<unknown>;
  /** Lets all stopped callers go on, and later ones pass. */
  release(): void;
};

/** The test's side of a `Signals`: what code under test passes, in order, and where it is made to stop. */
export type TestSignals = {
  reach(point: string, detail?: unknown): Promise<void>;
  /** Resolves with the detail of the first matching arrival, also when it came before this call. */
  reached(point: string, match?: Match): Promise<unknown>;
  /** Resolves when the point was reached `count` times in all. */
  reachedTimes(point: string, count: number): Promise<void>;
  /** Stops matching callers at the point from now on. */
  hold(point: string, match?: Match): Hold;
  /** All arrivals so far, as names. */
  readonly points: readonly string[];
  /** Releases every hold, so that code under test can be stopped. */
  releaseAll(): void;
};

const ANYTHING: Match = () => true;

/** Signals that a test waits on instead of sleeping. Give it to code under test as its `signals`. */
export function createTestSignals(): TestSignals {
  const arrivals: Arrival[] = [];
  const waiters = new Set<() => void>();
  const holds = new Set<{
    point: string;
    match: Match;
    stop: (detail: unknown) => Promise<void>;
    release: () => void;
  }>();

  function waitUntil<T>(find: () => T | undefined): Promise<T> {
    return new Promise((resolve) => {
      const look = () => {
        const found = find();
        if (found === undefined) return;
        waiters.delete(look);
        resolve(found);
      };
      waiters.add(look);
      look();
    });
  }

  function hold(point: string, match: Match = ANYTHING): Hold {
    let open: () => void = () => undefined;
    let arrive: (detail: unknown) => void = () => undefined;
    const opened = new Promise<void>((resolve) => (open = resolve));
    const held = new Promise<unknown>((resolve) => (arrive = resolve));
    const entry = {
      point,
      match,
      stop: (detail: unknown) => {
        arrive(detail);
        return opened;
      },
      release: () => {
        holds.delete(entry);
        open();
      },
    };
    holds.add(entry);
    return { held, release: entry.release, [Symbol.dispose]: entry.release };
  }

  return {
    async reach(point, detail) {
      arrivals.push({ point, detail });
      for (const look of waiters) look();
      for (const entry of holds) {
        if (entry.point === point && entry.match(detail)) await entry.stop(detail);
      }
    },
    async reached(point, match = ANYTHING) {
      const found = await waitUntil(() => arrivals.find((one) => one.point === point && match(one.detail)));
      return found.detail;
    },
    async reachedTimes(point, count) {
      await waitUntil(() => (arrivals.filter((one) => one.point === point).length >= count ? true : undefined));
    },
    hold,
    get points() {
      return arrivals.map((one) => one.point);
    },
    releaseAll() {
      for (const entry of holds) entry.release();
    },
  };
}
