import type { Permit, PoolUsage } from "./fifo-pool.ts";
import { currentPool } from "./pool-scope.ts";
import { POOL_NAMES, type PoolName } from "./pool-widths.ts";
import { processPools } from "./process-pools.ts";

/**
 * Waits for a permit of the pool that the async context names at this moment, runs `fn` with it and gives it back when
 * `fn` has settled, however it settles. `fn` sends one request and reads its body to the end (or cancels it) before it
 * returns, or sockets outnumber permits; it neither sleeps nor takes a second permit. An abort while waiting leaves the
 * queue and rejects with the signal's reason; `fn` then never runs.
 */
export async function withPermit<T>(fn: (pool: PoolName) => Promise<T>, signal?: AbortSignal): Promise<T> {
  const permit = await acquirePermit(signal);
  try {
    // The abort may have come between the grant and this line.
    signal?.throwIfAborted();
    return await fn(permit.pool);
  } finally {
    permit.release();
  }
}

/** As `withPermit`, for a caller whose request does not fit one function. The caller releases, once, on every path. */
export function acquirePermit(signal?: AbortSignal): Promise<Permit> {
  return processPools().pools[currentPool()].acquire(signal);
}

/** What both pools hold now, for metrics and for tests that nothing leaked. */
export function poolUsage(): Record<PoolName, PoolUsage> {
  const { pools } = processPools();
  return Object.fromEntries(POOL_NAMES.map((name) => [name, pools[name].usage])) as Record<PoolName, PoolUsage>;
}
