/** What has a clock and slots of its own: a host, by its key, or a route. */
export type AdmissionKey = `host:${string}` | `route:${string}`;

/** How fast and how wide a host or route may be for one hop. Null: no limit. */
export type Limit = {
  readonly key: AdmissionKey;
  /** Between two requests. */
  readonly intervalMs: number | null;
  /** Requests under way at once. */
  readonly slotsMax: number | null;
  /** The least time between two slots: a request that waited long for its slot is late, and late ones must not bunch. */
  readonly paceMs: number | null;
};

/** A limit of which at least one part is set; null when neither is. */
export function limitOf(limit: Limit): Limit | null {
  return limit.intervalMs === null && limit.slotsMax === null ? null : limit;
}

/**
 * Requests are spaced 4 % wider than the rate says: then tens of milliseconds between a booked time and its dispatch never
 * show more than the rate in any second.
 */
export const SPACING = 1.04;

/** The time between two requests; null: as fast as they come. A crawl-delay makes it longer, never shorter. */
export function intervalMsOf(requestsPerSecond: number | null, crawlDelayMs: number | null): number | null {
  const leastMs = Math.max(requestsPerSecond === null ? 0 : 1_000 / requestsPerSecond, crawlDelayMs ?? 0);
  return leastMs > 0 ? leastMs * SPACING : null;
}
