/** The names of the two pools. Every request takes exactly one permit, from one of them. */
export const POOL_NAMES = ["DEFAULT", "BURST"] as const;
export type PoolName = (typeof POOL_NAMES)[number];

/**
 * Requests in flight per process and pool. Literals on purpose: no setting, and no count of workers, divides them,
 * because each is also the width that one request's own fan-out passes through. README.md has the figures behind them.
 */
export const POOL_WIDTHS = { DEFAULT: 10, BURST: 25 } as const satisfies Record<PoolName, number>;

/**
 * The most requests that `workers` processes can have in flight at once: 35 each, so 210 for 6. The count of workers is
 * the only dial that moves it. Each `worker_threads` isolate has pools of its own and counts as a worker here.
 */
export function worstCaseInFlight(workers: number): number {
  if (!Number.isSafeInteger(workers) || workers < 0) throw new RangeError(`Not a count of workers: ${workers}`);
  return workers * (POOL_WIDTHS.DEFAULT + POOL_WIDTHS.BURST);
}
