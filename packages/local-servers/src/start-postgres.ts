import { existsSync, mkdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import postgres from "postgres";
import { clearStalePostmaster, POSTGRES_STOP } from "./clear-stale-postmaster.ts";
import { findFreePort, isPortFree } from "./free-port.ts";
import { CLUSTER_USER, initCluster } from "./init-cluster.ts";
import { LocalServerError } from "./local-server-error.ts";
import { findPostgresBinaries } from "./postgres-binaries.ts";
import { recordProcess, removeProcessRecord } from "./process-record.ts";
import { choosePostgresUser } from "./run-as.ts";
import type { RunningServer } from "./running-server.ts";
import { SERVER_ENVIRONMENT } from "./server-environment.ts";
import { type DetachedChild, spawnDetached, tailOf } from "./spawn-detached.ts";

/** `directory` is the data folder; its password and process record are its siblings. */
export type PostgresOptions = {
  readonly directory: string;
  /** Absent: a free one. */
  readonly port?: number;
  readonly logFile: string;
  /** Server settings by name, over the defaults. `{ fsync: "off" }` also skips the sync of a new cluster. */
  readonly settings?: Readonly<Record<string, string>>;
};

const DEFAULT_SETTINGS = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "200",
  jit: "off",
  log_checkpoints: "off",
  timezone: "UTC",
  log_timezone: "UTC",
};

/** Recovery after a crash replays at most a few WAL segments here; a minute is far beyond what was seen (0.2 s). */
const READY_WITHIN_MS = 60_000;
const START_TRIES = 5;

/**
 * Starts the embedded Postgres on 127.0.0.1 and resolves when it answers a query. Creates the cluster when the folder is
 * absent or empty; cleans up after a killed predecessor; runs under root too. Fsync is on unless a setting says otherwise.
 * The URL is the superuser's, on database `postgres`. Fails with a LocalServerError and leaves nothing running.
 */
export async function startPostgres(options: PostgresOptions): Promise<RunningServer> {
  const settings = { ...DEFAULT_SETTINGS, ...options.settings };
  const binaries = await findPostgresBinaries();
  const parent = dirname(resolve(options.directory));
  makeFolder(parent);
  // One spelling, so that a server of an earlier start is known by its command line.
  const directory = join(realpathSync(parent), basename(resolve(options.directory)));
  const recordFile = `${directory}.process.json`;
  makeFolder(dirname(resolve(options.logFile)));
  const runAs = choosePostgresUser({ binary: binaries.postgres, dataDirectory: directory });
  await clearStalePostmaster(directory, recordFile);
  const isDurable = options.settings?.["fsync"] !== "off";
  const password = initCluster({ directory, binaries, runAs, isDurable });
  if (options.port !== undefined && !(await isPortFree(options.port))) {
    throw new LocalServerError("PORT_TAKEN", `Port ${options.port} of 127.0.0.1 is taken`);
  }

  for (let tries = 1; ; tries++) {
    const port = options.port ?? (await findFreePort());
    const logFrom = existsSync(options.logFile) ? statSync(options.logFile).size : 0;
    const child = await spawnDetached({
      command: binaries.postgres,
      args: ["-D", directory, "-p", String(port), ...Object.entries(settings).flatMap(([k, v]) => ["-c", `${k}=${v}`])],
      env: SERVER_ENVIRONMENT,
      cwd: directory,
      logFile: options.logFile,
      runAs,
    });
    recordProcess(recordFile, "postgres", child.pid);
    const url = `postgres://${CLUSTER_USER}:${password}@127.0.0.1:${port}/postgres`;
    const outcome = await waitUntilReady(child, url);
    if (outcome === "READY") {
      return {
        name: "postgres",
        url,
        port,
        pid: child.pid,
        exited: child.exited,
        stop: async () => {
          await child.stop(POSTGRES_STOP);
          removeProcessRecord(recordFile);
        },
      };
    }
    await child.stop(POSTGRES_STOP);
    removeProcessRecord(recordFile);
    if (outcome === "WRONG_PASSWORD") {
      const reason = `${directory}.password is not the password of the cluster in ${directory}`;
      throw new LocalServerError("DATA_UNUSABLE", reason);
    }
    const tail = tailOf(options.logFile, logFrom);
    // The port may be lost to a race; orphaned backends of a killed server hold its shared memory for a moment.
    if (tail.includes("password authentication failed")) {
      throw new LocalServerError(
        "DATA_UNUSABLE",
        `${directory}.password is not the password of the cluster in ${directory}`,
      );
    }
    const isPassing = tail.includes("Address already in use") || tail.includes("shared memory block");
    if (!isPassing || tries === START_TRIES) {
      throw new LocalServerError("START_FAILED", `Postgres did not start in ${directory}:\n${tail}`);
    }
    await delay(200 * tries);
  }
}

async function waitUntilReady(child: DetachedChild, url: string): Promise<"READY" | "WRONG_PASSWORD" | "NOT_READY"> {
  const deadline = performance.now() + READY_WITHIN_MS;
  while (performance.now() < deadline && !child.hasExited()) {
    const sql = postgres(url, { max: 1, connect_timeout: 5, onnotice: () => undefined });
    try {
      await sql`select 1`;
      return "READY";
    } catch (cause) {
      if (isWrongPassword(cause)) return "WRONG_PASSWORD";
      await Promise.race([delay(25), child.exited]);
    } finally {
      await sql.end({ timeout: 0 });
    }
  }
  return "NOT_READY";
}

function isWrongPassword(cause: unknown): boolean {
  return cause instanceof postgres.PostgresError && cause.code === "28P01";
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : "unknown";
    throw new LocalServerError("FOLDER_UNUSABLE", `${folder} can't be created: ${reason}`, { cause });
  }
}
