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

/** What a supervisor knows of time. `pause` resolves early, and never rejects, when the signal aborts. */
export type SupervisorTime = {
  readonly monotonicMs: () => number;
  readonly pause: (milliseconds: number, signal: AbortSignal) => Promise<void>;
};

const MACHINE_TIME: SupervisorTime = {
  monotonicMs: () => performance.now(),
  pause: (milliseconds, signal) => delay(milliseconds, undefined, { signal }).catch(() => undefined),
};

/** `onPid` hears of every pid, and of null when there is none; `print` gets one line for each death. */
export function supervise(options: {
  readonly name: string;
  /** Starts it; resolves when it is ready; tells its pid as soon as there is one. */
  readonly launch: (onSpawn: (pid: number) => void, signal: AbortSignal) => Promise<Launched>;
  readonly onPid: (pid: number | null) => void;
  readonly print: (line: string) => void;
  /** The passing of time; the machine's own when absent. */
  readonly time?: SupervisorTime;
}): Supervisor {
  const { name, launch, onPid, print, time = MACHINE_TIME } = options;
  const abort = new AbortController();
  let running: Launched | null = null;
  let launching: Promise<unknown> = Promise.resolve();
  let loop: Promise<void> = Promise.resolve();
  let stopping: Promise<void> | null = null;
  let pauseMs = BACKOFF.firstMs;
  const isStopped = () => abort.signal.aborted;

  function launchOnce(): Promise<Launched> {
    const launched = launchNow();
    launching = launched.catch(() => undefined);
    return launched;
  }

  async function launchNow(): Promise<Launched> {
    try {
      const launched = await launch(onPid, abort.signal);
      running = launched;
      onPid(launched.pid);
      // A stop that came during the launch found nothing to stop.
      if (isStopped()) await launched.stop();
      return launched;
    } catch (error) {
      onPid(null);
      throw error;
    }
  }

  async function pause(): Promise<void> {
    await time.pause(pauseMs, abort.signal);
    pauseMs = Math.min(pauseMs * 2, BACKOFF.ceilingMs);
  }

  async function launchFirst(): Promise<Launched> {
    for (let tries = 1; ; tries++) {
      try {
        return await launchOnce();
      } catch (error) {
        if (tries === FIRST_TRIES || isStopped()) throw error;
        await pause();
      }
    }
  }

  /** Null when it was stopped meanwhile. */
  async function launchAgain(how: string): Promise<Launched | null> {
    for (let why = `ended (${how})`; ;) {
      if (isStopped()) return null;
      print(`${name} ${why}; it starts again in ${pauseMs} ms`);
      await pause();
      if (isStopped()) return null;
      try {
        return await launchOnce();
      } catch (error) {
        why = `did not start (${textOf(error)})`;
      }
    }
  }

  async function keepRunning(first: Launched): Promise<void> {
    for (let launched: Launched | null = first; launched !== null;) {
      const since = time.monotonicMs();
      const how = await launched.ended;
      running = null;
      onPid(null);
      if (time.monotonicMs() - since >= BACKOFF.steadyMs) pauseMs = BACKOFF.firstMs;
      launched = await launchAgain(how);
    }
  }

  async function stopNow(): Promise<void> {
    abort.abort();
    await launching;
    await running?.stop();
    await loop;
  }

  return {
    name,
    async start() {
      loop = keepRunning(await launchFirst());
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
