import { AsyncLocalStorage } from "node:async_hooks";
import { FifoPool } from "./fifo-pool.ts";
import { POOL_WIDTHS, type PoolName } from "./pool-widths.ts";

type ProcessPools = {
  readonly selection: AsyncLocalStorage<PoolName>;
  pools: Readonly<Record<PoolName, FifoPool>>;
};

const KEY: unique symbol = Symbol.for("@keble-scraper/concurrency/pools/v1");
const home = globalThis as typeof globalThis & { [KEY]?: ProcessPools };

/**
 * The two pools and the selection between them, one set per process however many copies of this module are loaded: two
 * versions in `node_modules` or a bundle must not double what the process sends. Made at first use. Internal.
 */
export function processPools(): ProcessPools {
  return (home[KEY] ??= { selection: new AsyncLocalStorage(), pools: createPools() });
}

/** Two pools with every permit free. Internal. */
export function createPools(): Readonly<Record<PoolName, FifoPool>> {
  return {
    DEFAULT: new FifoPool("DEFAULT", POOL_WIDTHS.DEFAULT),
    BURST: new FifoPool("BURST", POOL_WIDTHS.BURST),
  };
}
