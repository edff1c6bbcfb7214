import {
  CheckJobAnswer,
  CheckJobCall,
  type RouteCheck,
  type RouteState,
  SubmitJob,
  failed,
  localFailure,
  ok,
  zodDetails,
} from "@keble-scraper/contract";
import { hasCallbackEndpoint } from "@keble-scraper/db";
import { worstJobAttemptMicros, worstJobMicros } from "../job-cost.ts";
import { vetJob } from "../job-policy.ts";
import { procedure } from "../procedure.ts";

/**
 * What a submit of the same body would meet; nothing is created. A malformed body fails, a refused one is an answer. A route
 * of an allowed job may be closed for now (quarantined), or dearer than the job's cap: the job passes over it, or waits.
 */
export const checkJob = procedure
  .input(CheckJobCall)
  .output(CheckJobAnswer)
  .query(async ({ ctx, input }) => {
    const { callerId } = input.principal;
    if (callerId === null) return failed(localFailure("FORBIDDEN"));
    const parsed = SubmitJob.safeParse(input.body);
    if (!parsed.success) return failed({ ...localFailure("INVALID_REQUEST"), details: zodDetails(parsed.error) });
    const job = parsed.data;
    const known = await ctx.routes.listNow();
    const vetted = vetJob(job, { ...ctx, routes: known });
    const endpoint = job.callback?.endpoint;
    const isEndpointKnown =
      endpoint === undefined || (await hasCallbackEndpoint(ctx.database.commands, callerId, endpoint));
    const error = vetted.ok ? (isEndpointKnown ? null : localFailure("UNKNOWN_CALLBACK_ENDPOINT")) : vetted.failure;
    const base = { routes: checkRoutes(job, known), worstCostMicros: worstJobMicros(job, known) };
    return ok(error === null ? { allowed: true, ...base } : { allowed: false, error, ...base });
  });

function checkRoutes(job: SubmitJob, known: readonly RouteState[]): RouteCheck[] {
  return job.routes.map((route) => {
    const state = known.find((candidate) => candidate.route === route);
    if (state?.health !== "HEALTHY") return { route, available: false, reason: state?.reason ?? "not configured" };
    const worst = worstJobAttemptMicros(job, route, known);
    if (worst <= job.limits.costCapMicros) return { route, available: true };
    return {
      route,
      available: true,
      reason: `one attempt may cost ${worst} micro-USD, more than limits.costCapMicros`,
    };
  });
}
