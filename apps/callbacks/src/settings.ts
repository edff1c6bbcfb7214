import type { Settings } from "@keble-scraper/service";

/** The slice of settings that callbacks and its workers take. */
export type CallbacksSettings = Pick<
  Settings,
  "environment" | "logLevel" | "database" | "redis" | "internal" | "secretKey" | "timings" | "callbacks" | "retention"
>;
