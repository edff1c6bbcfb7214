import { type Container, createContainer, createInternalServer, createLogger } from "@keble-scraper/service";
import { listRouteStates } from "./route-states.ts";
import { fetchingRouter } from "./router.ts";
import type { FetchingSettings } from "./settings.ts";

export { type FetchWorkerOverrides, createFetchWorker } from "./worker/fetch-worker.ts";

/** The fetching service: what other services ask of the engine. The work itself is done by its workers. */
export function createFetching(settings: FetchingSettings): Container {
  const logger = createLogger({ name: "fetching", level: settings.logLevel });
  const server = createInternalServer({
    name: "fetching",
    port: settings.internal.ports.fetching,
    host: settings.internal.host,
    router: fetchingRouter,
    context: { routes: listRouteStates() },
    serviceToken: settings.internal.serviceToken,
    checks: [],
    logger,
  });
  return createContainer({
    name: "fetching",
    components: [server],
    logger,
    drainGraceMs: settings.timings.drainGraceMs,
  });
}
