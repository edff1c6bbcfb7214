import type { PoolName } from "./pool-widths.ts";
import { processPools } from "./process-pools.ts";

/**
 * Runs `fn` so that every permit taken by it, and by anything it starts at any depth, comes from the BURST pool; also
 * work still pending when `fn` has returned. Outside nothing changes. Start the work inside `fn`: a promise that was
 * made before and is only awaited here stays where it was made. For one live request's own bounded fan-out, nothing
 * else.
 */
export function runInBurstPool<T>(fn: () => T): T {
  return processPools().selection.run("BURST", fn);
}

/** The way back: background work started inside a burst would inherit its pool, and must not. */
export function runInDefaultPool<T>(fn: () => T): T {
  return processPools().selection.run("DEFAULT", fn);
}

/** The pool that a permit would be taken from here and now. DEFAULT where nobody has chosen. */
export function currentPool(): PoolName {
  return processPools().selection.getStore() ?? "DEFAULT";
}
