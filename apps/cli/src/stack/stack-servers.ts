import { connect } from "node:net";
import { join } from "node:path";
import {
  findRedisBinary,
  installRedisByApt,
  LocalServerError,
  type LocalServerErrorCode,
  type PreparedDatabase,
  prepareDatabase,
  type RunningServer,
  startPostgres,
  startRedis,
} from "@keble-scraper/local-servers";
import type { Settings } from "@keble-scraper/service";
import type { CliContext } from "../cli-context.ts";
import { CliError, type ExitReason } from "../cli-error.ts";
import { withDatabase } from "../with-database.ts";
import type { LocalStack } from "./local-stack.ts";
import type { StackSecrets } from "./stack-secrets.ts";
import type { Launched } from "./supervisor.ts";

const DATABASE = "keble_scraper";
const POSTGRES_OLDEST = 150_000;
const CONNECT_WITHIN_MS = 5_000;

const REASONS = {
  POSTGRES_BINARIES_MISSING: "SERVER_MISSING",
  ROOT_REFUSED: "SERVER_MISSING",
  DATA_UNUSABLE: "STATE_UNUSABLE",
  FOLDER_UNUSABLE: "STATE_UNUSABLE",
  FOLDER_IN_USE: "STATE_LOCKED",
  PORT_TAKEN: "PORT_TAKEN",
  REDIS_MISSING: "SERVER_MISSING",
  REDIS_INSTALL_FAILED: "SERVER_MISSING",
  START_FAILED: "SERVER_MISSING",
} as const satisfies Record<LocalServerErrorCode, ExitReason>;

/** The user's Postgres, checked, or the embedded one, started and given its database and its two roles. */
export async function openDatabaseServer(
  stack: LocalStack,
  context: CliContext,
  wanted: Settings,
  secrets: StackSecrets,
): Promise<PreparedDatabase> {
  if (isGiven(context, "SCRAPER_DATABASE_URL")) {
    await checkPostgres(wanted.database.migrationUrl);
    return { url: wanted.database.url, migrationUrl: wanted.database.migrationUrl };
  }
  let running: RunningServer | null = null;
  await stack.startServer("postgres", async () => {
    // After a crash it comes back where the others look for it.
    running = await startPostgres({
      directory: stack.state.postgres,
      logFile: join(stack.state.logs, "postgres.log"),
      ...(running === null ? {} : { port: running.port }),
    }).catch(toCliError);
    return toLaunched(running, "SIGQUIT");
  });
  return prepareDatabase({
    adminUrl: urlOf(running),
    database: DATABASE,
    owner: { name: "keble_owner", password: secrets.ownerPassword },
    app: { name: "keble_app", password: secrets.appPassword },
  });
}

/** The URL of the user's Redis, checked, or of a private one, started; its package is installed when that is possible. */
export async function openRedisServer(stack: LocalStack, context: CliContext): Promise<string> {
  const given = context.env["SCRAPER_REDIS_URL"];
  if (given !== undefined && isGiven(context, "SCRAPER_REDIS_URL")) {
    await checkReachable(given);
    return given;
  }
  const path = context.env["PATH"] ?? "";
  if (findRedisBinary(path) === null) await installRedis(context, path);
  let running: RunningServer | null = null;
  await stack.startServer("redis", async () => {
    running = await startRedis({
      path,
      directory: stack.state.redis,
      logFile: join(stack.state.logs, "redis.log"),
      ...(running === null ? {} : { port: running.port }),
    }).catch(toCliError);
    return toLaunched(running, "SIGKILL");
  });
  return urlOf(running);
}

async function installRedis(context: CliContext, path: string): Promise<void> {
  const proxies = ["http_proxy", "https_proxy", "no_proxy"].flatMap((name) => {
    const value = context.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  const installed = await installRedisByApt({ onMessage: context.print, env: Object.fromEntries(proxies) }).catch(
    (error: unknown) => context.print(error instanceof Error ? error.message : String(error)),
  );
  if (installed === "INSTALLED" && findRedisBinary(path) !== null) return;
  throw new CliError(
    "SERVER_MISSING",
    [
      "No Redis is to be had. Three ways to get one:",
      "  1. Set SCRAPER_REDIS_URL to a Redis or Valkey that runs.",
      "  2. Install redis-server or valkey-server, so that it is on the PATH (apt-get install redis-server, brew install redis).",
      "  3. Run `up` as root on Debian or Ubuntu, and it installs the package itself.",
    ].join("\n"),
  );
}

async function checkPostgres(url: string): Promise<void> {
  let version: number;
  try {
    version = await withDatabase(url, async ({ commands }) => {
      const [row] = await commands<{ version: number }[]>`
        select current_setting('server_version_num')::int as version`;
      return row?.version ?? 0;
    });
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "unknown";
    throw new CliError("SERVER_MISSING", `SCRAPER_DATABASE_URL: no query was answered there (${code}).`, { cause });
  }
  if (version < POSTGRES_OLDEST) {
    throw new CliError("SERVER_MISSING", "SCRAPER_DATABASE_URL: that Postgres is too old; 15 or newer is needed.");
  }
}

function checkReachable(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? 6379 : Number(port) });
    socket.setTimeout(CONNECT_WITHIN_MS);
    const fail = (why: string) => {
      socket.destroy();
      reject(new CliError("SERVER_MISSING", `SCRAPER_REDIS_URL: nothing answers there (${why}).`));
    };
    socket.once("connect", () => {
      socket.destroy();
      resolve();
    });
    socket.once("timeout", () => fail("timeout"));
    socket.once("error", (error: NodeJS.ErrnoException) => fail(error.code ?? "unknown"));
  });
}

function toLaunched(server: RunningServer, killSignal: NodeJS.Signals): Launched {
  return {
    pid: server.pid,
    ended: server.exited.then(({ code, signal }) => signal ?? `exit ${code ?? "unknown"}`),
    stop: () => server.stop(),
    kill: () => {
      try {
        process.kill(server.pid, killSignal);
      } catch {
        // It is gone already.
      }
    },
  };
}

function toCliError(error: unknown): never {
  if (error instanceof LocalServerError) throw new CliError(REASONS[error.code], error.message, { cause: error });
  throw error;
}

function urlOf(server: RunningServer | null): string {
  if (server === null) throw new Error("unreachable: a started server is known");
  return server.url;
}

function isGiven(context: CliContext, name: "SCRAPER_DATABASE_URL" | "SCRAPER_REDIS_URL"): boolean {
  return (context.env[name] ?? "").trim() !== "";
}
