import type { Container } from "@keble-scraper/service";
import type { FetchingSettings } from "../settings.ts";
import { openHttpWays } from "./open-ways.ts";
import { createRouteWorker, type RouteWorkerOverrides } from "./route-worker.ts";

/** A fetch worker: serves jobs of transport HTTP by DIRECT, the proxies and the unlocker. */
export function createFetchWorker(settings: FetchingSettings, overrides: RouteWorkerOverrides = {}): Container {
  return createRouteWorker(
    {
      name: "worker-fetch",
      transport: "HTTP",
      bell: "fetch",
      slots: ({ fetching }) => fetching.slots,
      openWays: openHttpWays,
    },
    settings,
    overrides,
  );
}
