import { createPools, processPools } from "./process-pools.ts";

/**
 * For tests only, and so not in the main entry: the next permit comes from fresh pools. Permits and waiters of before
 * stay with the pools they belong to and touch the new ones no more.
 */
export function resetPoolsForTests(): void {
  processPools().pools = createPools();
}
