import { setTimeout as timeout } from "node:timers/promises";
import { fullJitter, type Random } from "./full-jitter.ts";
import { parseHttpDate } from "./http-date.ts";
import type { PoolName } from "./pool-widths.ts";
import { parseRetryAfter } from "./retry-after.ts";
import { withPermit } from "./with-permit.ts";

/**
 * One call makes at most 3 attempts and sleeps at most 1.5 s in all by its own backoff, 20 s when the server asks. Small,
 * because callers check their deadlines between calls and do not see what goes on in here.
 */
export const RETRY_POLICY = {
  attemptsMax: 3,
  baseMs: 500,
  factor: 2,
  ceilingMs: 8_000,
  retryAfterMsMax: 10_000,
} as const;

/** What the loop reads of a response. Its body has been read to the end or cancelled. */
export type RetryableResponse = {
  readonly status: number;
  readonly headers: { get(name: string): string | null | undefined };
};

/** Clock (epoch milliseconds), sleep and randomness of the loop. `sleep` rejects with the signal's reason on an abort. */
export type RetryTiming = {
  readonly now: () => number;
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly random: Random;
};

/** The machine's own clock, timers and randomness. */
export const SYSTEM_TIMING: RetryTiming = { now: Date.now, sleep, random: Math.random };

/** One retryable answer, also one that a retry will absorb. `waitMs` is null when no attempt is left. */
export type RetryableAnswer = {
  readonly status: number;
  readonly pool: PoolName;
  readonly attempt: number;
  readonly attemptsLeft: number;
  readonly retryAfterMs: number | null;
  readonly waitMs: number | null;
};

/** `send` makes one request and reads its body; it is called once per attempt, each time with a permit held for it. */
export type RetriedRequest<R extends RetryableResponse> = {
  readonly send: () => Promise<R>;
  readonly timing: RetryTiming;
  readonly onRetryable?: (answer: RetryableAnswer) => void;
  readonly signal?: AbortSignal;
};

/**
 * Sends until an answer is final and returns it, whatever its status; after the last attempt a 429 or 5xx is returned as
 * it is. Only those are retried: any other status is an answer, and what `send` throws (a timeout, a refused
 * connection) is thrown on at once. Every attempt takes a permit of the pool the context names, and none is held while
 * sleeping.
 */
export async function requestWithRetry<R extends RetryableResponse>(request: RetriedRequest<R>): Promise<R> {
  const { send, timing, onRetryable, signal } = request;
  for (let attempt = 1; ; attempt += 1) {
    const { response, pool } = await withPermit(async (name) => ({ response: await send(), pool: name }), signal);
    if (!isRetryableStatus(response.status)) return response;

    const attemptsLeft = RETRY_POLICY.attemptsMax - attempt;
    const retryAfterMs = retryAfterOf(response, timing.now());
    const waitMs = attemptsLeft === 0 ? null : waitBefore(attempt, retryAfterMs, timing.random);
    onRetryable?.({ status: response.status, pool, attempt, attemptsLeft, retryAfterMs, waitMs });
    if (waitMs === null) return response;
    await timing.sleep(waitMs, signal);
  }
}

/** Whether an answer asks to be asked again: 429 and 500 to 599. */
export function isRetryableStatus(status: number): boolean {
  return status === 429 || (status >= 500 && status < 600);
}

function retryAfterOf({ headers }: RetryableResponse, nowMs: number): number | null {
  return parseRetryAfter(headers.get("retry-after"), parseHttpDate(headers.get("date"), nowMs) ?? nowMs);
}

/** What the server asks for is taken as it is, capped, without jitter; zero is an answer, not an absence. */
function waitBefore(attempt: number, retryAfterMs: number | null, random: Random): number {
  if (retryAfterMs !== null) return Math.min(retryAfterMs, RETRY_POLICY.retryAfterMsMax);
  return fullJitter({ ...RETRY_POLICY, attempt }, random);
}

async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await timeout(ms, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    // Node wraps the reason in an AbortError of its own.
    throw signal?.aborted === true ? signal.reason : error;
  }
}
