import type { Settings } from "@keble-scraper/service";

/** The settings that retention, the maintenance worker and beat take. */
export type RetentionSettings = Pick<
  Settings,
  "logLevel" | "database" | "redis" | "internal" | "timings" | "publish" | "retention" | "artifacts"
>;
