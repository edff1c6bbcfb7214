import { setTimeout as delay } from "node:timers/promises";

/** A started program, ready for use. */
export type Launched = {
  readonly pid: number;
  /** Resolves with a short text, such as `exit 1` or `SIGKILL`, when it ends. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
  /** Ends it at once, without waiting. */
  kill(): void;
};

/** Keeps one program running until it is stopped. */
export type Supervisor = {
  readonly name: string;
  /** Resolves when it is ready for the first time; fails when that did not come to be after a few tries. */
  start(): Promise<void>;
  /** Idempotent; no restart after it. */
  stop(): Promise<void>;
  kill(): void;
};

/** Pauses before a restart: 250 ms, doubled each time up to 10 s; a run of 30 s starts from 250 ms again. */
const BACKOFF = { firstMs: 250, ceilingMs: 10_000, steadyMs: 30_000 };
const FIRST_TRIES = 3;

/** `onPid` hears of every pid, and of null when there is none; `print` gets one line for each death. */
export function supervise(options: {
  readonly name: string;
  /** Starts it; resolves when it is ready; tells its pid as soon as there is one. */
  readonly launch: (onSpawn: (pid: number) => void, signal: AbortSignal) => Promise<Launched>;
  readonly onPid: (pid: number | null) => void;
  readonly print: (line: string) => void;
}): Supervisor {
  const { name, launch, onPid, print } = options;
  const abort = new AbortController();
  let running: Launched | null = null;
  let loop: Promise<void> = Promise.resolve();
  let stopping: Promise<void> | null = null;
  let pauseMs = BACKOFF.firstMs;

  async function launchOnce(): Promise<void> {
    try {
      running = await launch(onPid, abort.signal);
    } catch (error) {
      onPid(null);
      throw error;
    }
    onPid(running.pid);
    // A stop that came during the launch found nothing to stop.
    if (abort.signal.aborted) await running.stop();
  }

  async function pause(): Promise<void> {
    await delay(pauseMs, undefined, { signal: abort.signal }).catch(() => undefined);
    pauseMs = Math.min(pauseMs * 2, BACKOFF.ceilingMs);
  }

  async function keepRunning(): Promise<void> {
    while (running !== null) {
      const since = performance.now();
      const how = await running.ended;
      running = null;
      onPid(null);
      if (performance.now() - since >= BACKOFF.steadyMs) pauseMs = BACKOFF.firstMs;
      while (!abort.signal.aborted && running === null) {
        print(`${name} ended (${how}); it starts again in ${pauseMs} ms`);
        await pause();
        if (abort.signal.aborted) return;
        await launchOnce().catch((error: unknown) => print(`${name} did not start: ${textOf(error)}`));
      }
    }
  }

  async function stopNow(): Promise<void> {
    abort.abort();
    await running?.stop();
    await loop;
  }

  return {
    name,
    async start() {
      for (let tries = 1; ; tries++) {
        try {
          await launchOnce();
          break;
        } catch (error) {
          if (tries === FIRST_TRIES || abort.signal.aborted) throw error;
          await pause();
        }
      }
      loop = keepRunning();
    },
    stop() {
      return (stopping ??= stopNow());
    },
    kill() {
      abort.abort();
      running?.kill();
    },
  };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
