import {
  type DetailedFailure,
  type ErrorDetail,
  ROUTE_TRANSPORTS,
  type Result,
  type RouteState,
  type SubmitJob,
  failed,
  localFailure,
  ok,
} from "@keble-scraper/contract";
import { type AllowedTargets, hostKeyOf, isPaidRoute, vetUrl } from "@keble-scraper/egress";
import { worstJobAttemptMicros } from "./job-cost.ts";
import { findUnsupportedFields } from "./unsupported-fields.ts";

type Policy = {
  readonly routes: readonly RouteState[];
  readonly allowedTargets: AllowedTargets;
  readonly bodyBytesMax: number;
};

/**
 * What a well-formed job must meet to be accepted here. The value is the target's URL as it will be fetched. A forbidden
 * target gets one neutral text, whatever the reason. A route that is quarantined is accepted: its jobs wait. So is a paid
 * route whose one attempt may cost more than the job's cap: the job passes it over, and ends COST_CAP_EXCEEDED past the
 * last one; a check says so beforehand.
 */
export function vetJob(
  job: SubmitJob,
  policy: Policy,
): Result<{ readonly url: string; readonly hostKey: string }, DetailedFailure> {
  const vetted = vetUrl(job.target.url, { allowedTargets: policy.allowedTargets });
  if (!vetted.ok) return failed(localFailure("TARGET_FORBIDDEN"));
  const unavailable = unavailableRoutes(job, policy.routes);
  if (unavailable.length > 0) return failed({ ...localFailure("ROUTE_UNAVAILABLE"), details: unavailable });
  const unsupported = findUnsupportedFields(job, policy);
  if (unsupported.length > 0) return failed({ ...localFailure("NOT_SUPPORTED"), details: unsupported });
  const unpaid = unpaidRoutes(job, policy.routes);
  if (unpaid.length > 0) {
    // No other route is tried in place of one that was named: here the job ends before it began.
    return failed({ ...localFailure("COST_CAP_EXCEEDED", { disposition: "TERMINAL" }), details: unpaid });
  }
  return ok({ url: vetted.url.href, hostKey: hostKeyOf(vetted.url) });
}

function unavailableRoutes(job: SubmitJob, routes: readonly RouteState[]): ErrorDetail[] {
  const configured = routes.filter(
    (state) => state.health !== "NOT_CONFIGURED" && ROUTE_TRANSPORTS[state.route] === job.transport,
  );
  const names = configured.map((state) => state.route).join(", ") || "none";
  return job.routes.flatMap((route, index) => {
    if (configured.some((state) => state.route === route)) return [];
    const serves = ROUTE_TRANSPORTS[route];
    const why = serves === job.transport ? "is not available" : `serves ${serves} jobs`;
    return [{ path: `routes.${index}`, message: `${route} ${why}. Available for ${job.transport}: ${names}.` }];
  });
}

/** A job without money names no paid route, whatever its price is set to. */
function unpaidRoutes(job: SubmitJob, routes: readonly RouteState[]): ErrorDetail[] {
  if (job.limits.costCapMicros > 0) return [];
  return job.routes.filter(isPaidRoute).map((route) => {
    const worst = worstJobAttemptMicros(job, route, routes);
    const message = `${route} is paid: allow the job money. One attempt like this may cost ${worst} micro-USD.`;
    return { path: "limits.costCapMicros", message };
  });
}
