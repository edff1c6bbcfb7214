import { parseHttpDate } from "./http-date.ts";

const DECIMAL = /^(?<sign>[+-]?)(?<digits>\d+\.?\d*|\.\d+)(?:e(?<exponent>[+-]?\d+))?$/i;
const INFINITE = /^(?<sign>[+-]?)inf(?:inity)?$/i;

/**
 * Milliseconds a Retry-After header asks to wait, rounded up to the millisecond; null when it is absent or cannot be
 * read, which means: use your own backoff, guess nothing. Zero means now and is not absence. Knows no cap: `Infinity`
 * is a possible answer and the caller bounds it. `nowMs` is what a date is measured from: the response's own `Date`
 * (`parseHttpDate`) when it has one, so that a skewed clock on either side does no harm, else the clock that decides.
 */
export function parseRetryAfter(value: string | null | undefined, nowMs: number): number | null {
  const text = value?.trim();
  if (text === undefined || text === "") return null;

  const decimal = DECIMAL.exec(text)?.groups;
  if (decimal !== undefined) {
    if (decimal["sign"] === "-") return 0;
    // The decimal point moves by three places in the text, so that no binary rounding adds a millisecond.
    return Math.ceil(Number(`${decimal["digits"] ?? ""}e${Number(decimal["exponent"] ?? 0) + 3}`));
  }
  const infinite = INFINITE.exec(text)?.groups;
  if (infinite !== undefined) return infinite["sign"] === "-" ? 0 : Infinity;

  const atMs = parseHttpDate(text, nowMs);
  return atMs === null ? null : Math.max(0, Math.ceil(atMs - nowMs));
}
