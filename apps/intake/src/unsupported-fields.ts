import {
  CAPTURES,
  type Capture,
  EGRESS_WISHES,
  type ErrorDetail,
  METHODS,
  type Method,
  type Route,
  type RouteState,
  type SubmitJob,
} from "@keble-scraper/contract";
import { isPaidRoute } from "@keble-scraper/egress";

/** What each route can do by its nature. An Unlocker and a browser only GET; Cloudflare's service makes no MHTML. */
const ABILITIES: Readonly<
  Record<Route, { readonly methods: readonly Method[]; readonly captures: readonly Capture[] }>
> = {
  DIRECT: { methods: METHODS, captures: [] },
  DATACENTER: { methods: METHODS, captures: [] },
  RESIDENTIAL: { methods: METHODS, captures: [] },
  UNLOCKER: { methods: ["GET"], captures: [] },
  CLOUDFLARE_RENDER: { methods: ["GET"], captures: ["DOM", "SCREENSHOT", "PDF"] },
  LOCAL_RENDER: { methods: ["GET"], captures: CAPTURES },
};

/**
 * The fields of a job that this deployment, or a route that the job lists, can't honour: each is refused, none is ignored.
 * The job's routes are there and serve its transport.
 */
export function findUnsupportedFields(
  job: SubmitJob,
  deployment: { readonly routes: readonly RouteState[]; readonly bodyBytesMax: number },
): ErrorDetail[] {
  return [
    ...methodFaults(job),
    ...captureFaults(job),
    ...egressFaults(job, deployment.routes),
    ...(job.limits.maxBodyBytes > deployment.bodyBytesMax
      ? [{ path: "limits.maxBodyBytes", message: `At most ${deployment.bodyBytesMax} bytes are allowed here.` }]
      : []),
  ];
}

function methodFaults({ target: { method }, routes }: SubmitJob): ErrorDetail[] {
  return routes
    .filter((route) => !ABILITIES[route].methods.includes(method))
    .map((route) => ({ path: "target.method", message: `${route} does not ${method}.` }));
}

function captureFaults({ transport, capture, routes }: SubmitJob): ErrorDetail[] {
  if (capture === undefined) return [];
  if (transport !== "RENDER") return [{ path: "capture", message: "Only a RENDER captures." }];
  return routes
    .filter((route) => !ABILITIES[route].captures.includes(capture))
    .map((route) => ({ path: "capture", message: `${route} makes no ${capture}.` }));
}

/** Wishes narrow the paid routes; those that are free leave from where they are. */
function egressFaults({ egress, routes: listed }: SubmitJob, routes: readonly RouteState[]): ErrorDetail[] {
  if (egress === undefined) return [];
  const paid = listed.filter(isPaidRoute);
  if (paid.length === 0) return [{ path: "egress", message: "It narrows paid routes, and none is listed." }];
  return EGRESS_WISHES.filter((wish) => egress[wish] !== undefined).flatMap((wish) =>
    paid
      .filter((route) => routes.find((state) => state.route === route)?.narrows.includes(wish) !== true)
      .map((route) => ({ path: `egress.${wish}`, message: `${route} can't be narrowed by it here.` })),
  );
}
