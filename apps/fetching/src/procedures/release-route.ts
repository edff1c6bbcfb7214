import { ReleaseRouteCall, RouteInfoAnswer } from "@keble-scraper/contract";
import { releaseRoute as storeRelease } from "@keble-scraper/db/commands/fetching";
import { answerRoute } from "../answer-route.ts";
import { forOperators } from "../for-operators.ts";
import { procedure } from "../procedure.ts";

/** Opens a quarantined route again, audited, and wakes workers for the jobs that waited for it. An open one stays so. */
export const releaseRoute = procedure
  .input(ReleaseRouteCall)
  .output(RouteInfoAnswer)
  .mutation(({ ctx, input: { principal, route } }) =>
    forOperators(principal, async () => {
      const by = { actor: principal.keyId, requestId: ctx.requestId };
      const isReleased = await storeRelease(ctx.database.commands, { route, by, retentionDays: ctx.auditDays });
      if (isReleased) ctx.wake(route);
      return answerRoute(ctx, route);
    }),
  );
