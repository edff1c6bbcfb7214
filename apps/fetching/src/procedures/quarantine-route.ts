import {
  type DetailedFailure,
  QUARANTINE_SECONDS_MAX,
  QuarantineRouteCall,
  type Result,
  RouteInfoAnswer,
  failed,
  localFailure,
  ok,
} from "@keble-scraper/contract";
import { quarantineRoute as storeQuarantine } from "@keble-scraper/db/commands/fetching";
import { answerRoute } from "../answer-route.ts";
import { forOperators } from "../for-operators.ts";
import { procedure } from "../procedure.ts";

/** Closes a route to jobs, audited. One that is closed already gets the operator's note and end. */
export const quarantineRoute = procedure
  .input(QuarantineRouteCall)
  .output(RouteInfoAnswer)
  .mutation(({ ctx, input: { principal, route, input } }) =>
    forOperators(principal, async () => {
      const forMs = readLength(input, Date.now());
      if (!forMs.ok) return forMs;
      await storeQuarantine(ctx.database.commands, {
        route,
        reason: "OPERATOR",
        nativeCode: null,
        note: input.note ?? null,
        forMs: forMs.value,
        by: { actor: principal.keyId, requestId: ctx.requestId },
        retentionDays: ctx.auditDays,
      });
      return answerRoute(ctx, route);
    }),
  );

/** How long from now, in milliseconds; null: until it is released. */
export function readLength(
  { seconds, until }: QuarantineRouteCall["input"],
  nowMs: number,
): Result<number | null, DetailedFailure> {
  if (seconds !== undefined) return ok(seconds * 1_000);
  if (until === undefined) return ok(null);
  const forMs = Date.parse(until) - nowMs;
  if (forMs > 0 && forMs <= QUARANTINE_SECONDS_MAX * 1_000) return ok(forMs);
  const message = forMs > 0 ? "At most 30 days ahead are allowed." : "This moment is past.";
  return failed({ ...localFailure("INVALID_REQUEST"), details: [{ path: "until", message }] });
}
