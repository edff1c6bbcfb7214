import { router } from "./procedure.ts";
import { getRouteInfos } from "./procedures/get-route-infos.ts";
import { getUsage } from "./procedures/get-usage.ts";
import { listBudgets } from "./procedures/list-budgets.ts";
import { listRoutes } from "./procedures/list-routes.ts";
import { quarantineRoute } from "./procedures/quarantine-route.ts";
import { releaseRoute } from "./procedures/release-route.ts";

/** The fetch engine's face to other services. */
export const fetchingRouter = router({
  listRoutes,
  getRouteInfos,
  quarantineRoute,
  releaseRoute,
  listBudgets,
  getUsage,
});

export type FetchingRouter = typeof fetchingRouter;
