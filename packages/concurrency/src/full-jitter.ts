/** A number in [0, 1), as `Math.random` gives. */
export type Random = () => number;

/** `attempt` counts from 1: the attempt that has just ended. Times are milliseconds. */
export type Backoff = {
  readonly baseMs: number;
  readonly factor: number;
  readonly ceilingMs: number;
  readonly attempt: number;
};

/**
 * Whole milliseconds drawn evenly from 0 to min(ceilingMs, baseMs × factor^(attempt − 1)), with one call of `random`:
 * callers that were throttled together do not come back together. Jobs use factor 2, deliveries factor 5. A base or a
 * ceiling of 0 means no wait. A figure out of range is a bug and throws.
 */
export function fullJitter({ baseMs, factor, ceilingMs, attempt }: Backoff, random: Random): number {
  if (!Number.isInteger(attempt) || attempt < 1) throw new RangeError(`Attempts count from 1, not ${attempt}`);
  if (!isDuration(baseMs) || !isDuration(ceilingMs)) throw new RangeError("A backoff needs finite times of 0 or more");
  if (!(factor >= 1)) throw new RangeError(`A backoff does not shrink: factor ${factor}`);
  // factor^n may overflow to Infinity, and Infinity × 0 is NaN.
  const spanMs = baseMs === 0 ? 0 : Math.min(ceilingMs, baseMs * factor ** (attempt - 1));
  return Math.ceil(random() * spanMs);
}

function isDuration(ms: number): boolean {
  return Number.isFinite(ms) && ms >= 0;
}
