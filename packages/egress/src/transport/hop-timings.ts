/** Milliseconds spent so far; null while the phase has not been reached. Several hops add up. */
export type HopTimings = { dnsMs: number | null; connectMs: number | null };
