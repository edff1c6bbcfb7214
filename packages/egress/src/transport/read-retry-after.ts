import { parseHttpDate, parseRetryAfter } from "@keble-scraper/concurrency";

/** The headers of whatever answered, by lower-case name. */
type Headers = { value(name: string): string | null };

/** Milliseconds that a response asks us to wait; null when it does not, or not readably. A date is read against its Date. */
export function readRetryAfterMs(head: Headers, wallMs: number): number | null {
  const sentAt = parseHttpDate(head.value("date"), wallMs);
  return parseRetryAfter(head.value("retry-after"), sentAt ?? wallMs);
}

/** When a Retry-After allows the next try, RFC 3339; null when the response does not say, or not readably. */
export function readRetryAt(head: Headers, wallMs: number): string | null {
  const waitMs = readRetryAfterMs(head, wallMs);
  return waitMs === null ? null : new Date(Math.ceil(wallMs) + Math.min(waitMs, RETRY_AFTER_MS_MAX)).toISOString();
}

/** The parser knows no cap and reads "inf"; a year is past every deadline and still a date. */
const RETRY_AFTER_MS_MAX = 366 * 24 * 3_600_000;
