export type { Permit, PoolUsage } from "./fifo-pool.ts";
export { type Backoff, fullJitter, type Random } from "./full-jitter.ts";
export { parseHttpDate } from "./http-date.ts";
export { currentPool, runInBurstPool, runInDefaultPool } from "./pool-scope.ts";
export { POOL_NAMES, POOL_WIDTHS, type PoolName, worstCaseInFlight } from "./pool-widths.ts";
export {
  isRetryableStatus,
  requestWithRetry,
  type RetriedRequest,
  RETRY_POLICY,
  type RetryableAnswer,
  type RetryableResponse,
  type RetryTiming,
  SYSTEM_TIMING,
} from "./request-with-retry.ts";
export { parseRetryAfter } from "./retry-after.ts";
export { acquirePermit, poolUsage, withPermit } from "./with-permit.ts";
