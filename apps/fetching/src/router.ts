import { router } from "./procedure.ts";
import { listRoutes } from "./procedures/list-routes.ts";

/** The fetch engine's face to other services. */
export const fetchingRouter = router({ listRoutes });

export type FetchingRouter = typeof fetchingRouter;
