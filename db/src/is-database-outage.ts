/** SQLSTATE classes that say nothing about the rows: connection trouble, no resources, shutdown, a statement cut short. */
const OUTAGE_SQLSTATES = /^(?:08|53|57|58)|^(?:40001|40P01|55P03|25P03)$/u;

/** What postgres.js and Node call a connection that was refused, lost or closed. */
const OUTAGE_CODES: ReadonlySet<string> = new Set([
  "CONNECT_TIMEOUT",
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "CONNECTION_ENDED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EPIPE",
  "ETIMEDOUT",
  "EAI_AGAIN",
]);

/**
 * True when a statement failed because the database could not be asked or could not finish, not because of what it said.
 * Drizzle wraps the driver's error, so an error's cause is looked at too.
 */
export function isDatabaseOutage(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  if ("code" in error && typeof error.code === "string") {
    return OUTAGE_CODES.has(error.code) || OUTAGE_SQLSTATES.test(error.code);
  }
  return "cause" in error && isDatabaseOutage(error.cause);
}
