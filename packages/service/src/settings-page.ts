import type { Setting } from "./setting.ts";
import { SETTINGS } from "./setting-table.ts";

/** The settings page, in Markdown, from the one list. */
export function renderSettingsPage(): string {
  const rows = Object.entries<Setting<unknown>>(SETTINGS).map(([name, setting]) =>
    [
      `\`${name}\``,
      renderDefault(setting),
      [setting.expects, setting.unit === "" ? "" : `(${setting.unit})`].filter((part) => part !== "").join(" "),
      setting.readBy === "all" ? "all" : setting.readBy.join(", "),
      setting.secret ? `${setting.help} Secret.` : setting.help,
    ].join(" | "),
  );
  return [
    "# Settings",
    "",
    "Environment variables, read once at start. Whitespace-only counts as absent. All faults are reported at once, by name;",
    "values are never shown. This page is generated from the list that the parser reads.",
    "",
    "| Setting | When absent | Allowed | Read by | What it does |",
    "| --- | --- | --- | --- | --- |",
    ...rows.map((row) => `| ${row} |`),
    "",
  ].join("\n");
}

function renderDefault(setting: Setting<unknown>): string {
  if (setting.absentHelp !== undefined) {
    return setting.absentHelp;
  }
  if (typeof setting.absent === "object") {
    return `\`${setting.absent.text}\``;
  }
  return setting.absent === "required" ? "required" : "none";
}
