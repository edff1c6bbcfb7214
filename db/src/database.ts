import type { Socket } from "node:net";
import { drizzle, type PostgresJsDatabase } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import { isSchemaReady } from "./migrate.ts";
import { openWatchedSocket, type WatchedTarget } from "./watched-socket.ts";

/** The command pool: plain postgres.js, whose templates are prepared statements. */
export type Sql = postgres.Sql;
/** Whatever runs statements: the pool, or a transaction of it. */
export type Tx = postgres.ISql;
/** A piece of SQL with its parameters. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>;

/**
 * Both pools of a process, as a part of its container. `start` connects to nothing; `stop` waits for running statements
 * until the deadline (on the `performance.now()` scale), then cuts them. `check` is down while Postgres does not answer or
 * has another schema than this version's.
 */
export type Database = {
  readonly name: "database";
  readonly commands: Sql;
  readonly reads: PostgresJsDatabase;
  start(): Promise<void>;
  stop(deadline: number): Promise<void>;
  check(): Promise<"ok" | "down">;
};

/**
 * Plans of the hot commands were seen to turn into sequential scans and hash joins under stale statistics (a settle
 * 500 times slower), so the command pool forbids them. Lists and statistics keep the planner's freedom.
 */
const COMMAND_PLANNER = {
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  jit: "off",
} as const;

/** What an answer may be late beyond the server's own limit on the statement, before its connection counts as cut off. */
const ANSWER_LATE_MS = 1_000;

type DatabaseOptions = {
  readonly url: string;
  /** Shown in pg_stat_activity. */
  readonly applicationName: string;
  readonly commandConnections: number;
  readonly readConnections: number;
  /** A statement that runs longer is ended by the server. */
  readonly statementTimeoutMs: number;
};

/** Opens nothing yet: connections are made when the first statement needs one, and again after an outage. */
export function createDatabase(options: DatabaseOptions): Database {
  let dialled = 0;
  // `socket` is documented by postgres.js, and missing from its types.
  const shared: postgres.Options<Record<string, never>> & { socket: (target: WatchedTarget) => Socket } = {
    socket(target) {
      dialled += 1;
      return openWatchedSocket(target, dialled, options.statementTimeoutMs + ANSWER_LATE_MS);
    },
    connect_timeout: 2,
    // The default grows to 20 s, and statements wait it out: a database that is back would be asked that much later.
    backoff: (tries: number) => Math.min(0.05 * 2 ** tries, 1),
    idle_timeout: 60,
    onnotice: () => {},
    keep_alive: 10,
  };
  const session = {
    application_name: options.applicationName,
    statement_timeout: options.statementTimeoutMs,
    lock_timeout: options.statementTimeoutMs,
    idle_in_transaction_session_timeout: options.statementTimeoutMs,
  };
  const commands = postgres(options.url, {
    ...shared,
    max: options.commandConnections,
    connection: { ...session, ...COMMAND_PLANNER },
  });
  // drizzle() changes the client it is given (dates and json pass through), so it gets one of its own.
  const readClient = postgres(options.url, { ...shared, max: options.readConnections, connection: session });
  let stopping: Promise<void> | null = null;
  return {
    name: "database",
    commands,
    reads: drizzle(readClient),
    start: () => Promise.resolve(),
    stop(deadline) {
      const timeout = Math.max(0, deadline - performance.now()) / 1_000;
      stopping ??= Promise.all([commands.end({ timeout }), readClient.end({ timeout })]).then(() => {});
      return stopping;
    },
    async check() {
      return (await isSchemaReady(commands)) ? "ok" : "down";
    },
  };
}
