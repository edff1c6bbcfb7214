import type { Settings } from "@keble-scraper/service";

/** The settings that intake takes. */
export type IntakeSettings = Pick<
  Settings,
  "logLevel" | "database" | "redis" | "internal" | "callers" | "fetching" | "retention" | "timings"
>;
