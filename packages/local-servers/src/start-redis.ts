import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { findRedisBinary } from "./find-redis-binary.ts";
import { findFreePort, isPortFree } from "./free-port.ts";
import { LocalServerError } from "./local-server-error.ts";
import { recordProcess, removeProcessRecord, stopLeftover } from "./process-record.ts";
import { RUN_AS_SELF } from "./run-as.ts";
import type { RunningServer, StopStep } from "./running-server.ts";
import { SERVER_ENVIRONMENT } from "./server-environment.ts";
import { type DetachedChild, spawnDetached, tailOf } from "./spawn-detached.ts";

/** Where and from which PATH. */
export type RedisOptions = {
  /** The PATH to search for `redis-server` or `valkey-server`. */
  readonly path: string;
  /** Working folder and home of the process record; absent: a temporary one, removed at the stop. */
  readonly directory?: string;
  /** Absent: a free one. */
  readonly port?: number;
  readonly logFile: string;
};

const REDIS_STOP: readonly StopStep[] = [
  { signal: "SIGTERM", waitMs: 5_000 },
  { signal: "SIGKILL", waitMs: 2_000 },
];
const READY_WITHIN_MS = 10_000;
const START_TRIES = 5;

/**
 * Starts a private Redis on 127.0.0.1 that keeps nothing on disk and refuses writes when full (`noeviction`), and resolves
 * when it answers PING. A leftover of a killed predecessor in the same folder is stopped first. Fails with REDIS_MISSING,
 * PORT_TAKEN, FOLDER_IN_USE or START_FAILED and leaves nothing running.
 */
export async function startRedis(options: RedisOptions): Promise<RunningServer> {
  const binary = findRedisBinary(options.path);
  if (binary === null) {
    throw new LocalServerError("REDIS_MISSING", "Neither redis-server nor valkey-server is on the PATH");
  }
  const directory = resolve(options.directory ?? mkdtempSync(join(tmpdir(), "keble-redis-")));
  const recordFile = join(directory, "redis.process.json");
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  mkdirSync(dirname(resolve(options.logFile)), { recursive: true, mode: 0o700 });
  if ((await stopLeftover(recordFile, REDIS_STOP)) === "OWNED") {
    throw new LocalServerError("FOLDER_IN_USE", `A Redis already runs from ${directory} for a live process`);
  }
  if (options.port !== undefined && !(await isPortFree(options.port))) {
    throw new LocalServerError("PORT_TAKEN", `Port ${options.port} of 127.0.0.1 is taken`);
  }

  for (let tries = 1; ; tries++) {
    const port = options.port ?? (await findFreePort());
    const logFrom = existsSync(options.logFile) ? statSync(options.logFile).size : 0;
    const child = await spawnDetached({
      command: binary,
      args: redisArgs(port, directory),
      env: SERVER_ENVIRONMENT,
      cwd: directory,
      logFile: options.logFile,
      runAs: RUN_AS_SELF,
    });
    recordProcess(recordFile, "redis", child.pid);
    const stop = async (): Promise<void> => {
      await child.stop(REDIS_STOP);
      removeProcessRecord(recordFile);
      if (options.directory === undefined) rmSync(directory, { recursive: true, force: true });
    };
    if (await waitUntilReady(child, port)) {
      return { name: "redis", url: `redis://127.0.0.1:${port}`, port, pid: child.pid, exited: child.exited, stop };
    }
    await child.stop(REDIS_STOP);
    removeProcessRecord(recordFile);
    const tail = tailOf(options.logFile, logFrom);
    if (!/address already in use/i.test(tail) || tries === START_TRIES) {
      throw new LocalServerError("START_FAILED", `${binary} did not start:\n${tail}`);
    }
  }
}

function redisArgs(port: number, directory: string): string[] {
  const settings = {
    port: String(port),
    bind: "127.0.0.1",
    dir: directory,
    appendonly: "no",
    "maxmemory-policy": "noeviction",
    daemonize: "no",
  };
  return [...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]), "--save", ""];
}

async function waitUntilReady(child: DetachedChild, port: number): Promise<boolean> {
  const deadline = performance.now() + READY_WITHIN_MS;
  while (performance.now() < deadline && !child.hasExited()) {
    if (await answersPing(port)) return !child.hasExited();
    await Promise.race([delay(10), child.exited]);
  }
  return false;
}

function answersPing(port: number): Promise<boolean> {
  return new Promise((resolveAnswer) => {
    const socket = connect({ port, host: "127.0.0.1", timeout: 1_000 });
    const answer = (isPong: boolean) => {
      socket.destroy();
      resolveAnswer(isPong);
    };
    socket.once("connect", () => socket.write("PING\r\n"));
    socket.once("data", (data) => answer(data.toString("latin1").startsWith("+PONG")));
    socket.once("error", () => answer(false));
    socket.once("timeout", () => answer(false));
    socket.once("close", () => answer(false));
  });
}
