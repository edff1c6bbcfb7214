/** The longest look away: a job with an earlier deadline may have been submitted meanwhile. */
const LOOK_MS_MAX = 1_000;
/** The shortest: a crowd of deadlines becomes a few batches a second, not one look each. */
const LOOK_MS_MIN = 100;

/**
 * How long to wait before looking at deadlines again. `nextMs` is the time to the next open job's deadline: null without
 * open jobs, negative for one that runs in its abort grace and is ended after that.
 */
export function deadlineDelayMs(nextMs: number | null, abortGraceMs: number): number {
  const dueMs = nextMs === null ? LOOK_MS_MAX : nextMs > 0 ? nextMs : nextMs + abortGraceMs;
  return Math.min(LOOK_MS_MAX, Math.max(LOOK_MS_MIN, Math.ceil(dueMs)));
}
