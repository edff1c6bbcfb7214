/** What has a clock and slots of its own: a host, by its key, or a route. */
export type AdmissionKey = `host:${string}` | `route:${string}`;

/** How fast and how wide a host or route may be for one hop. Null: no limit. */
export type Limit = {
  readonly key: AdmissionKey;
  /** Between two requests. */
  readonly intervalMs: number | null;
  /** Requests under way at once. */
  readonly slotsMax: number | null;
  /** Between two requests that are let go: whoever is late for its turn must not bunch with the next one. */
  readonly paceMs: number | null;
};

/** A limit of which at least one part is set; null when neither is. */
export function limitOf(limit: Limit): Limit | null {
  return limit.intervalMs === null && limit.slotsMax === null ? null : limit;
}

/**
 * Turns are 10 % wider apart than the rate says, and requests are let go 6 % wider apart, however late they are for their
 * turns: a worker that woke late bunches with nobody, and who is late catches up. Then 60 ms are left in each second, for
 * `EARLY_MS` and for the way between letting a request go and its arrival: that may take 50 ms more or less than another's
 * without a second that shows more than the rate.
 */
const SPACING = 1.1;
const PACE = 1.06;

/**
 * A request may be let go this early, which its pace does not forget: the next one waits as much longer. So what a timer or
 * a busy process is late by costs no throughput. Above 94 requests a second this is more than their distance.
 */
export const EARLY_MS = 10;

/** The time between two turns, and between two requests that are let go; null: as fast as they come. */
export function spacingOf(
  requestsPerSecond: number | null,
  crawlDelayMs: number | null,
): { readonly intervalMs: number | null; readonly paceMs: number | null } {
  // A crawl-delay makes it longer, never shorter.
  const leastMs = Math.max(requestsPerSecond === null ? 0 : 1_000 / requestsPerSecond, crawlDelayMs ?? 0);
  return leastMs > 0 ? { intervalMs: leastMs * SPACING, paceMs: leastMs * PACE } : { intervalMs: null, paceMs: null };
}
