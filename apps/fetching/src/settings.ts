import type { Settings } from "@keble-scraper/service";

/** The settings that fetching and its workers take. */
export type FetchingSettings = Pick<
  Settings,
  | "environment"
  | "logLevel"
  | "database"
  | "redis"
  | "internal"
  | "timings"
  | "retry"
  | "fetching"
  | "callers"
  | "artifacts"
  | "cache"
  | "retention"
  | "admission"
  | "routes"
>;
