import { isDatabaseOutage } from "./is-database-outage.ts";

/** SQLSTATEs of a login that was refused, of a database that does not exist, and of a table that is not there yet. */
const UNREADY = /^(?:28|3D000$|42P01$)/u;

/**
 * True when a statement failed because the database is away or not set up yet: an outage, a refused login, no such
 * database, no schema. A service waits for it and says so in its readiness; it is nothing that the statement said.
 */
export function isDatabaseUnready(error: unknown): boolean {
  return isDatabaseOutage(error) || hasUnreadyCode(error);
}

function hasUnreadyCode(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  if ("code" in error && typeof error.code === "string") return UNREADY.test(error.code);
  return "cause" in error && hasUnreadyCode(error.cause);
}
