import { spawn } from "node:child_process";
import { closeSync, fstatSync, openSync, readSync, renameSync, statSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { LocalServerError } from "./local-server-error.ts";
import type { RunAs } from "./run-as.ts";
import type { ServerExit, StopStep } from "./running-server.ts";

/** A child in its own process group whose output goes to a file. */
export type DetachedChild = {
  readonly pid: number;
  readonly exited: Promise<ServerExit>;
  /** Whether it ended by now. */
  hasExited(): boolean;
  stop(steps: readonly StopStep[]): Promise<void>;
};

const LOG_BYTES_MAX = 16 * 1024 * 1024;
const TAIL_BYTES = 8 * 1024;

/**
 * Starts a program detached, with standard output and error appended to `logFile` (mode 0600; over 16 MiB it
 * is set aside at the start). The child does not keep
 * this process alive by itself; a pending `stop` does.
 */
export async function spawnDetached(options: {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly logFile: string;
  readonly runAs: RunAs;
}): Promise<DetachedChild> {
  const { runAs } = options;
  const log = openLog(options.logFile);
  const [command, args] = runAs.wrap(options.command, options.args);
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: options.env,
    stdio: ["ignore", log, log],
    detached: true,
    ...runAs.ids,
  });
  closeSync(log);
  let ended: ServerExit | null = null;
  const exited = new Promise<ServerExit>((resolve) => {
    child.once("exit", (code, signal) => {
      ended = { code, signal };
      resolve(ended);
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", () => resolve());
    child.once("error", (cause) => {
      reject(new LocalServerError("START_FAILED", `${options.command} can't be run: ${cause.message}`, { cause }));
    });
  });
  child.unref();
  const { pid } = child;
  if (pid === undefined) throw new LocalServerError("START_FAILED", `${options.command} has no process id`);
  let stopping: Promise<void> | null = null;

  async function stopBy(steps: readonly StopStep[]): Promise<void> {
    child.ref();
    for (const { signal, waitMs } of steps) {
      if (ended !== null) return;
      child.kill(signal);
      const timer = new AbortController();
      await Promise.race([exited, delay(waitMs, undefined, { signal: timer.signal }).catch(() => undefined)]);
      timer.abort();
    }
    await exited;
  }

  return {
    pid,
    exited,
    hasExited: () => ended !== null,
    stop: (steps) => (stopping ??= stopBy(steps)),
  };
}

/** The last lines that were appended to a log since it had `from` bytes, for an error message; empty when there are none. */
export function tailOf(logFile: string, from: number): string {
  try {
    const log = openSync(logFile, "r");
    try {
      const end = fstatSync(log).size;
      const start = Math.max(from, end - TAIL_BYTES);
      const tail = Buffer.alloc(Math.max(0, end - start));
      const read = readSync(log, tail, 0, tail.length, start);
      return tail.subarray(0, read).toString("utf8").trim().split("\n").slice(-6).join("\n");
    } finally {
      closeSync(log);
    }
  } catch {
    return "";
  }
}

/** Opens a log to append, after setting an overgrown one aside: one old file is kept. */
function openLog(file: string): number {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found !== undefined && found.size > LOG_BYTES_MAX) renameSync(file, `${file}.old`);
  return openSync(file, "a", 0o600);
}
