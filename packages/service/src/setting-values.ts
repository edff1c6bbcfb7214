import type { Setting } from "./setting.ts";
import type { SETTINGS, SettingName } from "./setting-table.ts";

/** All settings as parsed, by name; an absent one without a default is `undefined`. */
export type SettingValues = {
  readonly [N in SettingName]: (typeof SETTINGS)[N] extends Setting<infer T, infer A>
    ? [A] extends ["none"]
      ? T | undefined
      : T
    : never;
};

/** What is wrong with one setting. Neither field shows its value. */
export type SettingsFault = { readonly name: SettingName; readonly message: string };
