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
import { type AllowedTargets, hostKeyOf, vetUrl } from "@keble-scraper/egress";

type Policy = {
  readonly routes: readonly RouteState[];
  readonly allowedTargets: AllowedTargets;
  readonly bodyBytesMax: number;
};

/**
 * What a well-formed job must meet to be accepted here. The value is the target's URL as it will be fetched. A forbidden
 * target gets one neutral text, whatever the reason.
 */
export function vetJob(
  job: SubmitJob,
  policy: Policy,
): Result<{ readonly url: string; readonly hostKey: string }, DetailedFailure> {
  const vetted = vetUrl(job.target.url, { allowedTargets: policy.allowedTargets });
  if (!vetted.ok) return failed(localFailure("TARGET_FORBIDDEN"));
  // A transport that is not there has no routes to name.
  const unavailable = job.transport === "HTTP" ? unavailableRoutes(job, policy.routes) : [];
  if (unavailable.length > 0) return failed({ ...localFailure("ROUTE_UNAVAILABLE"), details: unavailable });
  const unsupported = unsupportedFields(job);
  if (unsupported.length > 0) return failed({ ...localFailure("NOT_SUPPORTED"), details: unsupported });
  if (job.limits.maxBodyBytes > policy.bodyBytesMax) {
    const message = `At most ${policy.bodyBytesMax} bytes are allowed here.`;
    return failed({ ...localFailure("NOT_SUPPORTED"), details: [{ path: "limits.maxBodyBytes", message }] });
  }
  return ok({ url: vetted.url.href, hostKey: hostKeyOf(vetted.url) });
}

function unsupportedFields(job: SubmitJob): ErrorDetail[] {
  const fields: Record<string, boolean> = {
    transport: job.transport !== "HTTP",
    capture: job.capture !== undefined,
    egress: job.egress !== undefined,
    freshness: job.freshness !== "NO_CACHE",
    "limits.costCapMicros": job.limits.costCapMicros !== 0,
  };
  return Object.entries(fields).flatMap(([path, isAsked]) =>
    isAsked ? [{ path, message: "This deployment does not have it." }] : [],
  );
}

function unavailableRoutes(job: SubmitJob, routes: readonly RouteState[]): ErrorDetail[] {
  const available = routes.filter((state) => state.available && ROUTE_TRANSPORTS[state.route] === job.transport);
  const names = available.map((state) => state.route).join(", ") || "none";
  return job.routes.flatMap((route, index) =>
    available.some((state) => state.route === route)
      ? []
      : [{ path: `routes.${index}`, message: `${route} is not available. Available for ${job.transport}: ${names}.` }],
  );
}
