import type { Settings } from "@keble-scraper/service";

/** The settings that the proxy-health worker takes. */
export type ProxyHealthSettings = Pick<
  Settings,
  "logLevel" | "database" | "redis" | "timings" | "fetching" | "routes" | "retention" | "proxyHealth"
>;
