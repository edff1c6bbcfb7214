/** Why an attempt has to end at once: its caller said so, its job's deadline came, or its own hard limit did. */
export type StopReason = "ABORTED" | "DEADLINE" | "ATTEMPT_LIMIT";

/** One attempt's stop: every phase hangs its teardown on it, so that ending an attempt closes what is open in any phase. */
export type Stop = {
  readonly reason: StopReason | null;
  /** Calls `listener` once, when the stop comes (at once if it has come). Returns how to take it off again. */
  onStop(listener: () => void): () => void;
  /** For parts that know only signals; made when it is first asked for. */
  readonly signal: AbortSignal;
  /** Stops now, as if the caller had said so. */
  abort(): void;
  /** Drops the timer and the listener on the caller's signal. */
  end(): void;
};

/** What a stopped wait answers. */
export const STOPPED = Symbol("stopped");
export type Stopped = typeof STOPPED;

/** Milliseconds, 24 days: longer waits overflow Node's timers; no attempt lasts that long. */
export const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * A stop that fires at `deadline` (monotonic milliseconds), `limitMs` from now, or when `signal` aborts. One timer and one
 * listener per attempt: combined signals cost ten times as much.
 */
export function createStop(options: {
  readonly signal: AbortSignal;
  readonly deadline: number;
  readonly limitMs: number;
  readonly nowMs: number;
}): Stop {
  const listeners = new Set<() => void>();
  let reason: StopReason | null = null;
  let controller: AbortController | undefined;

  const stop = (why: StopReason): void => {
    if (reason !== null) return;
    reason = why;
    controller?.abort();
    const waiting = [...listeners];
    listeners.clear();
    for (const listener of waiting) listener();
  };

  const untilDeadlineMs = options.deadline - options.nowMs;
  const isDeadlineFirst = untilDeadlineMs <= options.limitMs;
  const waitMs = Math.min(Math.max(0, isDeadlineFirst ? untilDeadlineMs : options.limitMs), TIMER_MS_MAX);
  const onTime = (): void => {
    stop(isDeadlineFirst ? "DEADLINE" : "ATTEMPT_LIMIT");
  };
  const onAbort = (): void => {
    stop("ABORTED");
  };
  const timer = waitMs > 0 ? setTimeout(onTime, Math.ceil(waitMs)) : undefined;
  if (options.signal.aborted) onAbort();
  else options.signal.addEventListener("abort", onAbort, { once: true });
  if (timer === undefined) onTime();

  return {
    get reason() {
      return reason;
    },
    onStop(listener) {
      if (reason !== null) {
        listener();
        return () => {};
      }
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
    get signal() {
      controller ??= new AbortController();
      if (reason !== null) controller.abort();
      return controller.signal;
    },
    abort: onAbort,
    end() {
      clearTimeout(timer);
      options.signal.removeEventListener("abort", onAbort);
      listeners.clear();
    },
  };
}

/** The stop of an attempt that begins now: at its job's deadline, after its own limit, or when `signal` aborts. */
export function createAttemptStop(
  request: { readonly deadline: number; readonly attemptLimitMs: number },
  signal: AbortSignal,
  clock: { monotonicMs(): number },
): Stop {
  return createStop({
    signal,
    deadline: request.deadline,
    limitMs: request.attemptLimitMs,
    nowMs: clock.monotonicMs(),
  });
}

/** Waits for `work`, or for the stop: whoever does not listen to it is left behind, and its late failure is ignored. */
export function untilStop<T>(stop: Stop, work: Promise<T>): Promise<T | Stopped> {
  return new Promise((resolve, reject) => {
    const off = stop.onStop(() => {
      resolve(STOPPED);
    });
    work.then(
      (value) => {
        off();
        resolve(value);
      },
      (error: unknown) => {
        off();
        reject(error instanceof Error ? error : new Error(String(error)));
      },
    );
  });
}
