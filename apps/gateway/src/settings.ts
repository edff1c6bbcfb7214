import type { Settings } from "@keble-scraper/service";

/** The slice of settings the gateway takes. */
export type GatewaySettings = Pick<
  Settings,
  "gateway" | "internal" | "database" | "logLevel" | "timings" | "retention"
>;
