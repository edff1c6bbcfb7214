import { router } from "./context.ts";
import { getStats } from "./procedures/get-stats.ts";

/** Retention's face to other services. */
export const retentionRouter = router({ getStats });
/** The type that callers name. */
export type RetentionRouter = typeof retentionRouter;
