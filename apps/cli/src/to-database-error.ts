import { isDatabaseOutage } from "@keble-scraper/db";
import type { SettingName } from "@keble-scraper/service";
import { CliError } from "./cli-error.ts";

/** SQLSTATEs of a login that was refused and of a database that does not exist. */
const REFUSED = /^(?:28|3D000)/;

/** SQLSTATE of a table that is not there: nothing was migrated. */
const UNDEFINED_TABLE = "42P01";

/**
 * The error that a command line ends with when its database can't be asked: SERVER_MISSING with one sentence that names
 * the setting and shows neither URL nor SQL. Any other error comes back as it is.
 */
export function toDatabaseError(error: unknown, setting: SettingName): unknown {
  if (error instanceof CliError) return error;
  const code = codeOf(error);
  if (code === UNDEFINED_TABLE) {
    const message = `${setting}: the database there has no schema yet. Run \`keble-scraper migrate\` first.`;
    return new CliError("SERVER_MISSING", message, { cause: error });
  }
  if (code === null || !(isDatabaseOutage(error) || REFUSED.test(code))) return error;
  return new CliError("SERVER_MISSING", `${setting}: no query was answered there (${code}).`, { cause: error });
}

/** The code that an error or the nearest of its causes has. */
function codeOf(error: unknown): string | null {
  if (typeof error !== "object" || error === null) return null;
  if ("code" in error && typeof error.code === "string") return error.code;
  return "cause" in error ? codeOf(error.cause) : null;
}
