import { createDatabase, type Database } from "@keble-scraper/db";

/** Who the audit names for what an operator does at the command line. */
export const BY_CLI = { actor: "system:cli", requestId: null } as const;

const STATEMENT_TIMEOUT_MS = 10_000;
const CONNECTIONS = 1;
const CLOSE_WITHIN_MS = 1_000;

/** Opens the database for one piece of work of this program, and closes it after it. */
export async function withDatabase<T>(
  url: string,
  work: (database: Database) => Promise<T>,
  limits: { readonly statementTimeoutMs?: number; readonly commandConnections?: number } = {},
): Promise<T> {
  const database = createDatabase({
    url,
    applicationName: "keble-scraper-cli",
    commandConnections: limits.commandConnections ?? CONNECTIONS,
    readConnections: 1,
    statementTimeoutMs: limits.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS,
  });
  try {
    return await work(database);
  } finally {
    await database.stop(performance.now() + CLOSE_WITHIN_MS);
  }
}
