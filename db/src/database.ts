import { drizzle, type PostgresJsDatabase } from "drizzle-orm/postgres-js";
import postgres from "postgres";

/** The command pool: plain postgres.js, whose templates are prepared statements. */
export type Sql = postgres.Sql;
/** Whatever runs statements: the pool, or a transaction of it. */
export type Tx = postgres.ISql;
/** A piece of SQL with its parameters. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>;

/** Both pools of a process. `close` waits for running statements at most `timeoutMs`, then cuts them. */
export type Database = {
  readonly commands: Sql;
  readonly reads: PostgresJsDatabase;
  close(timeoutMs: number): Promise<void>;
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
  const shared = {
    connect_timeout: 2,
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
  return {
    commands,
    reads: drizzle(readClient),
    async close(timeoutMs) {
      const timeout = timeoutMs / 1000;
      await Promise.all([commands.end({ timeout }), readClient.end({ timeout })]);
    },
  };
}
