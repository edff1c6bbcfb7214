import { createProcedures } from "@keble-scraper/service";

const { router } = createProcedures<object>();

/** Nothing is asked of retention yet: a procedure comes with its caller. */
export const retentionRouter = router({});
/** The type that callers name. */
export type RetentionRouter = typeof retentionRouter;
