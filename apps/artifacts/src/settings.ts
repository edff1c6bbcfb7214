import type { Settings } from "@keble-scraper/service";

/** The slice of settings that artifacts takes. */
export type ArtifactsSettings = Pick<
  Settings,
  "logLevel" | "database" | "internal" | "secretKey" | "artifacts" | "timings" | "retention"
>;
