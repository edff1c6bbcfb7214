import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  findRedisBinary,
  installRedisByApt,
  isSameProcess,
  prepareDatabase,
  readProcessRecord,
  recordProcess,
  type RunningServer,
  startPostgres,
  startRedis,
  stopLeftover,
} from "@keble-scraper/local-servers";

/** Where the run's servers are. */
export type TestServers = {
  /** The superuser, on database `postgres`. */
  readonly postgresUrl: string;
  readonly redisUrl: string;
};

/** The roles every test database has: names and passwords are the same in all of them. */
export const TEST_ROLES = {
  owner: { name: "scraper_owner", password: "owner" },
  app: { name: "scraper_app", password: "app" },
} as const;

type Shared = { servers: TestServers; release: () => Promise<void> };
type Started = { readonly servers: TestServers; readonly stop: () => Promise<void> };

const FOLDER_PREFIX = "keble-testkit-";
const SHARED = Symbol.for("keble-scraper.testkit.servers");
const home = globalThis as unknown as { [SHARED]?: { started: Promise<Started>; users: number } };

/**
 * Starts the run's Postgres (without fsync) and Redis, or shares those that another project of this run started. They
 * stop when the last user releases them. Leftovers of killed runs are cleaned up first. On a machine without Redis its
 * package is installed, where that is possible.
 */
export async function shareTestServers(): Promise<Shared> {
  // Each project loads this module anew, so what they share hangs on the process.
  const shared = (home[SHARED] ??= { started: startServers(), users: 0 });
  shared.users += 1;
  const { servers, stop } = await shared.started;
  let isReleased = false;
  const release = async () => {
    if (isReleased) return;
    isReleased = true;
    shared.users -= 1;
    if (shared.users > 0) return;
    delete home[SHARED];
    await stop();
  };
  return { servers, release };
}

async function startServers(): Promise<Started> {
  await sweepDeadRuns();
  const folder = mkdtempSync(join(tmpdir(), FOLDER_PREFIX));
  recordProcess(join(folder, "run.json"), "run", process.pid);
  const path = process.env["PATH"] ?? "";
  if (findRedisBinary(path) === null) {
    await installRedisByApt({ onMessage: (message) => process.stdout.write(`${message}\n`) });
  }
  const running: RunningServer[] = [];
  const killAll = () => {
    for (const { pid } of running) tryKill(pid);
  };
  // A run that ends without its teardown (a second Ctrl-C) still takes its servers with it.
  process.once("exit", killAll);
  const stop = async () => {
    process.off("exit", killAll);
    await Promise.all(running.map((server) => server.stop()));
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const postgres = await startPostgres({
      directory: join(folder, "postgres"),
      logFile: join(folder, "postgres.log"),
      settings: { fsync: "off", max_connections: "400" },
    });
    running.push(postgres);
    const redis = await startRedis({
      path,
      directory: join(folder, "redis"),
      logFile: join(folder, "redis.log"),
    });
    running.push(redis);
    await prepareDatabase({ adminUrl: postgres.url, database: "roles", ...TEST_ROLES });
    return { servers: { postgresUrl: postgres.url, redisUrl: redis.url }, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function sweepDeadRuns(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(FOLDER_PREFIX)) continue;
    const folder = join(tmpdir(), name);
    const run = readProcessRecord(join(folder, "run.json"));
    if (run === null || isSameProcess(run.pid, run.startId)) continue;
    await stopLeftover(join(folder, "postgres.process.json"), [{ signal: "SIGQUIT", waitMs: 5_000 }]);
    await stopLeftover(join(folder, "redis", "redis.process.json"), [{ signal: "SIGKILL", waitMs: 5_000 }]);
    rmSync(folder, { recursive: true, force: true });
  }
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, "SIGQUIT");
  } catch {
    // It is gone, which is what was wanted.
  }
}
