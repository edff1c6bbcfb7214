import { createLocalRenderTransport } from "@keble-scraper/egress/render";
import type { Container } from "@keble-scraper/service";
import type { FetchingSettings } from "../settings.ts";
import { createEgressParts, openRenderWays } from "./open-ways.ts";
import { createRouteWorker, type RouteWorkerOverrides } from "./route-worker.ts";

/**
 * A render worker: serves jobs of transport RENDER by a Chromium of its own, or by a supplier's. Rejects when LOCAL_RENDER is
 * on and no Chromium is found.
 */
export async function createRenderWorker(
  settings: FetchingSettings,
  overrides: Omit<RouteWorkerOverrides, "ways"> = {},
): Promise<Container> {
  const { browser } = settings.routes.LOCAL_RENDER;
  const parts = createEgressParts(settings);
  const localRender = browser === null ? null : await createLocalRenderTransport({ ...parts, browser });
  return createRouteWorker(
    {
      name: "worker-render",
      transport: "RENDER",
      bell: "render",
      slots: ({ fetching }) => fetching.renderSlots,
      openWays: () => openRenderWays(settings, localRender),
    },
    settings,
    overrides,
  );
}
