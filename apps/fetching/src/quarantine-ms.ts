import type { QuarantineAdvice } from "@keble-scraper/egress";

const DAY_MS = 86_400_000;

/**
 * For how long from now, in milliseconds and above 0, advice closes a route. Advice without a time lasts until the next
 * midnight UTC, when a supplier's day begins anew.
 */
export function quarantineMs({ forMs }: QuarantineAdvice, wallMs: number): number {
  return forMs ?? DAY_MS - (wallMs % DAY_MS);
}
