import { parseSettings } from "@keble-scraper/service";
import type { CallbacksSettings } from "../src/settings.ts";

/** Reads a test's settings as a process reads its own. */
export function settingsOf(env: Readonly<Record<string, string>>): CallbacksSettings {
  const parsed = parseSettings(env);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return parsed.value;
}
