import {
  listUnknownSettings,
  parseSettings,
  renderSettingsFaults,
  type SettingName,
  type Settings,
} from "@keble-scraper/service";
import type { CliContext } from "./cli-context.ts";
import { CliError } from "./cli-error.ts";

/**
 * The settings of a command, or USAGE with every fault at once, by name. Names that look like ours and are not are told on
 * the error stream: most are spelling mistakes. `base` stands in for what the environment lacks;
 * `environmentDefault` is for `up` alone.
 */
export function readSettings(
  context: CliContext,
  options: {
    readonly environmentDefault?: "development";
    readonly base?: Readonly<Partial<Record<SettingName, string>>>;
  } = {},
): Settings {
  const parsed = parseSettings(context.env, options);
  for (const name of listUnknownSettings(context.env))
    context.printError(`${name} is no setting of this version; ignored`);
  if (parsed.ok) return parsed.value;
  throw new CliError("USAGE", `Some settings can't be used:\n${renderSettingsFaults(parsed.faults)}`);
}

/**
 * Values in place of required settings that a command does not read, so that it asks only for what it needs. None of them
 * is ever used.
 */
export const UNREAD_SETTINGS = {
  SCRAPER_REDIS_URL: "redis://unread.invalid",
  SCRAPER_SERVICE_TOKEN: "this-command-does-not-read-it",
  SCRAPER_SECRET_KEY: "0".repeat(64),
} as const satisfies Partial<Record<SettingName, string>>;
