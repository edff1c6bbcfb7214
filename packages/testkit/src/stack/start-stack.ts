import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describeProcess, findFreePort, isSameProcess } from "@keble-scraper/local-servers";
import { withTimeout } from "../with-timeout.ts";
import { createStackApi, type StackApi } from "./stack-api.ts";

/** How to run a stack. Absent `stateDirectory`: a new one, removed at the end. */
export type StackOptions = {
  /** More arguments of `up`; `--processes=full --no-demo` come first, and later ones win. */
  readonly args?: readonly string[];
  /** Settings; the test's own environment is not passed on. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stateDirectory?: string;
};

/** The whole product running as real processes. Disposing it stops it and fails when anything outlives it. */
export type Stack = AsyncDisposable & {
  readonly stateDirectory: string;
  readonly gatewayUrl: string;
  readonly serviceKey: string;
  readonly operatorKey: string;
  readonly api: StackApi;
  /** The pid of `up` itself. */
  readonly pid: number;
  /** What `up` printed so far. */
  output(): string;
  /** Logical names to pids, as they are now. */
  processes(): Readonly<Record<string, number>>;
  /** The pid of a name; throws when it does not run. */
  pidOf(name: string): number;
  /** Sends a signal to a process of the stack: SIGKILL by default, SIGSTOP and SIGCONT to pause and resume it. */
  kill(name: string, signal?: NodeJS.Signals): number;
  /** Resolves with the pid once the name runs as another process than `pid`. */
  waitForRestart(name: string, pid: number): Promise<number>;
  /** Ends `up` as a person would and returns its exit code. Idempotent. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
};

const BINARY = fileURLToPath(new URL("../../../../apps/cli/bin/keble-scraper.js", import.meta.url));
/** What `up` tells its parent once everything answers. */
const READY_MESSAGE = "keble-scraper.ready";
const READY_WITHIN_MS = 90_000;
const STOP_WITHIN_MS = 60_000;
const RESTART_WITHIN_MS = 30_000;
/** After a forced end the databases are still putting themselves down. */
const LEAVE_WITHIN_MS = 5_000;

/** Starts `keble-scraper up` from the built binary and resolves when everything answers. */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  const stateDirectory = options.stateDirectory ?? mkdtempSync(join(tmpdir(), "keble-stack-"));
  const child = spawn(process.execPath, [BINARY, "up", "--processes=full", "--no-demo", ...(options.args ?? [])], {
    env: {
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      SCRAPER_STATE_DIRECTORY: stateDirectory,
      SCRAPER_GATEWAY_PORT: String(await findFreePort()),
      ...options.env,
    },
    // The channel ties it to this process: when the test run dies, the stack drains and ends.
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const chunks: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => chunks.push(chunk.toString()));
  const exited = once(child, "exit").then(([code]) => code as number | null);
  const seen = new Map<number, string>();
  let stopping: Promise<number | null> | null = null;

  function processes(): Readonly<Record<string, number>> {
    const found = readJson(join(stateDirectory, "processes.json")) as Record<string, number>;
    for (const pid of Object.values(found)) {
      const description = describeProcess(pid);
      if (description !== null) seen.set(pid, description.startId);
    }
    return found;
  }

  function pidOf(name: string): number {
    const pid = processes()[name];
    if (pid === undefined) throw new Error(`${name} does not run; these do: ${Object.keys(processes()).join(", ")}`);
    return pid;
  }

  async function stopNow(signal: NodeJS.Signals): Promise<number | null> {
    processes();
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_WITHIN_MS);
    const code = await exited;
    clearTimeout(timer);
    return code;
  }

  async function dispose(): Promise<void> {
    await (stopping ??= stopNow("SIGTERM"));
    const left = await stillAlive(seen);
    for (const pid of left) process.kill(pid, "SIGKILL");
    if (options.stateDirectory === undefined) rmSync(stateDirectory, { recursive: true, force: true });
    if (left.length > 0) throw new Error(`These processes outlived the stack: ${left.join(", ")}\n${chunks.join("")}`);
  }

  const ready = new Promise<"ready">((resolve) => {
    child.on("message", (message) => {
      if (message === READY_MESSAGE) resolve("ready");
    });
  });
  try {
    const outcome = await withTimeout(
      Promise.race([ready, exited]),
      READY_WITHIN_MS,
      () => `a ready stack\n${chunks.join("")}`,
    );
    if (outcome !== "ready") throw new Error(`up ended with exit code ${String(outcome)}:\n${chunks.join("")}`);
    const { gatewayUrl, serviceKey, operatorKey } = readCredentials(stateDirectory);
    processes();
    return {
      stateDirectory,
      gatewayUrl,
      serviceKey,
      operatorKey,
      api: createStackApi({ gatewayUrl, serviceKey }),
      pid: child.pid ?? 0,
      output: () => chunks.join(""),
      processes,
      pidOf,
      kill(name, signal = "SIGKILL") {
        const pid = pidOf(name);
        process.kill(pid, signal);
        return pid;
      },
      async waitForRestart(name, pid) {
        const deadline = performance.now() + RESTART_WITHIN_MS;
        while (performance.now() < deadline) {
          const now = processes()[name];
          if (now !== undefined && now !== pid) return now;
          await delay(20);
        }
        throw new Error(`${name} was not started again within ${RESTART_WITHIN_MS} ms\n${chunks.join("")}`);
      },
      stop: (signal = "SIGTERM") => (stopping ??= stopNow(signal)),
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    // What keeps it from starting is the news, not what it leaves behind.
    await dispose().catch(() => undefined);
    throw error;
  }
}

/** The pids of those processes that do not end within a moment. */
async function stillAlive(seen: ReadonlyMap<number, string>): Promise<readonly number[]> {
  const deadline = performance.now() + LEAVE_WITHIN_MS;
  for (;;) {
    const left = [...seen].filter(([pid, startId]) => isSameProcess(pid, startId)).map(([pid]) => pid);
    if (left.length === 0 || performance.now() > deadline) return left;
    await delay(20);
  }
}

function readCredentials(stateDirectory: string): { gatewayUrl: string; serviceKey: string; operatorKey: string } {
  return readJson(join(stateDirectory, "credentials.json")) as ReturnType<typeof readCredentials>;
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, "utf8")) as unknown;
}
