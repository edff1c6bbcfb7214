import type { AttemptUsage } from "../transport/fetch-outcome.ts";

/**
 * What one call to a provider's API used, at any moment: an attempt may end while its robots.txt is still under way.
 * `isBillable`: whether it is a request that the provider bills when it succeeds. `isBilled`: what the provider says, or its
 * documents say of such an answer; null: nobody says.
 */
export type CallUsage = {
  isBillable: () => boolean;
  isBilled: boolean | null;
  browserMs: () => number;
  requestId: string | null;
};

/** What the calls of one attempt used, robots.txt among them when the attempt began its fetch. */
export type UsageRecord = {
  /** A call that has used nothing yet; whoever makes it fills it in. */
  begin(): CallUsage;
  /** So far: requests that are or may be billed. `isBilled`: whether any is; false: none, by the provider's own word. */
  total(): AttemptUsage;
};

/** A record without calls. */
export function createUsageRecord(): UsageRecord {
  const calls: CallUsage[] = [];
  return {
    begin() {
      const call: CallUsage = { isBillable: () => false, isBilled: null, browserMs: () => 0, requestId: null };
      calls.push(call);
      return call;
    },
    total() {
      const billable = calls.filter(({ isBillable }) => isBillable());
      const open = billable.filter(({ isBilled }) => isBilled !== false);
      const isAnyBilled = open.some(({ isBilled }) => isBilled === true);
      return {
        requests: open.length,
        socketBytes: 0,
        browserMs: Math.ceil(calls.reduce((total, { browserMs }) => total + browserMs(), 0)),
        isBilled: isAnyBilled ? true : billable.length > 0 && open.length === 0 ? false : null,
        providerRequestId: calls.findLast(({ requestId }) => requestId !== null)?.requestId ?? null,
      };
    },
  };
}
