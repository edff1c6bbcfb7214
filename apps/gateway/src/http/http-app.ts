import { localFailure, type Principal, toErrorEnvelope } from "@keble-scraper/contract";
import { DependencyUnavailable, type HealthReport } from "@keble-scraper/service";
import { type Context, Hono } from "hono";
import { ApiFailure, failureHeaders, httpStatusOf, toFailure } from "../api-failure.ts";
import type { GatewayParts } from "../context.ts";
import { buildOpenApi } from "../openapi.ts";
import { createRestHandler } from "../rest/handle-rest.ts";
import { REST_ROUTES } from "../rest/rest-routes.ts";
import { apiRouter } from "../router.ts";
import { handleTrpc, TRPC_PATH } from "./handle-trpc.ts";
import { takeRequestId } from "./request-id.ts";

type Vars = { Variables: { requestId: string; operation: string; principal: Principal | undefined } };

/** Operations whose path a later release fills while other methods or names beside them are served already. */
const NOT_YET: readonly (readonly [method: string, path: string])[] = [
  ["POST", "/v1/callback-events/replay"],
  ["POST", "/v1/callback-events/discard"],
];

/** The public HTTP app: REST, the typed face, health and the OpenAPI document. */
export function createHttpApp(
  parts: GatewayParts & { readonly readiness: () => Promise<HealthReport>; readonly isStopping: () => boolean },
): Hono<Vars> {
  const { logger, clock } = parts;
  const app = new Hono<Vars>({ strict: true });

  app.use(async (c, next) => {
    const startedAt = clock.monotonicMs();
    c.set("requestId", takeRequestId(c.req.header("x-request-id")));
    c.set("operation", "none");
    await next();
    c.res.headers.set("x-request-id", c.get("requestId"));
    c.res.headers.set("cache-control", "no-store");
    c.res.headers.set("x-content-type-options", "nosniff");
    if (parts.isStopping()) {
      c.res.headers.set("connection", "close");
    }
    logger.info(
      {
        requestId: c.get("requestId"),
        operation: c.get("operation"),
        method: c.req.method,
        status: c.res.status,
        durationMs: Math.round(clock.monotonicMs() - startedAt),
        keyId: c.get("principal")?.keyId ?? null,
      },
      "request.answered",
    );
  });

  app.onError((error, c) => answerError(c, error));
  app.notFound((c) => answerError(c, new ApiFailure(localFailure("NOT_FOUND"))));

  for (const [method, path] of NOT_YET) {
    app.on(method, toPattern(path), (c) => c.notFound());
  }
  for (const path of sortedPaths()) {
    const routes = REST_ROUTES.filter((route) => route.path === path);
    for (const route of routes) {
      const handle = createRestHandler(route, parts);
      app.on(route.method, toPattern(path), (c) => {
        c.set("operation", route.procedure);
        return handle({
          request: c.req.raw,
          requestId: c.get("requestId"),
          params: c.req.param(),
          onPrincipal: (principal) => c.set("principal", principal),
        });
      });
    }
    onlyAllow(
      app,
      path,
      routes.map((route) => route.method),
    );
  }

  app.get("/healthz", (c) => c.json({ status: "ok" }));
  app.get("/readyz", async (c) => {
    const report = await parts.readiness();
    const status = parts.isStopping() ? "down" : report.status;
    return c.json({ ...report, status }, status === "down" ? 503 : 200);
  });
  const openApi = buildOpenApi();
  app.get("/openapi.json", (c) => c.json(openApi));
  for (const path of ["/healthz", "/readyz", "/openapi.json"]) {
    onlyAllow(app, path, ["GET"]);
  }

  app.on(["GET", "POST"], `${TRPC_PATH}/*`, (c) => {
    // The name is one of ours or "unknown": a log field is no place for what a stranger wrote.
    c.set("operation", toProcedureName(c.req.path) ?? "unknown");
    return handleTrpc(parts, {
      request: c.req.raw,
      requestId: c.get("requestId"),
      onPrincipal: (principal) => c.set("principal", principal),
      onFault: (error) => logFault(c, error),
    });
  });
  onlyAllow(app, `${TRPC_PATH}/*`, ["GET", "POST"]);
  return app;

  function answerError(c: Context<Vars>, error: unknown): Response {
    const failure = toFailure(error);
    if (!c.req.raw.signal.aborted) {
      logFault(c, error);
    }
    return Response.json(toErrorEnvelope(failure, { requestId: c.get("requestId") }), {
      status: httpStatusOf(failure),
      headers: failureHeaders(failure, clock.wallMs()),
    });
  }

  /** Faults and missing parts are logged; what a caller did wrong is in the request's own line. */
  function logFault(c: Context<Vars>, error: unknown): void {
    const { code, kind } = toFailure(error);
    const cause = error instanceof Error && error.cause instanceof DependencyUnavailable ? error.cause : error;
    const fields = { requestId: c.get("requestId"), operation: c.get("operation"), err: cause };
    if (kind === "LOCAL" && code === "INTERNAL") {
      logger.error(fields, "request.faulted");
    } else if (cause instanceof DependencyUnavailable) {
      logger.warn({ ...fields, part: cause.part, reason: cause.reason }, "dependency.unavailable");
    }
  }

  function onlyAllow(target: Hono<Vars>, path: string, methods: readonly string[]): void {
    const allow = [...new Set(methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])))].join(", ");
    target.all(toPattern(path), (c) => {
      const answer = answerError(c, new ApiFailure(localFailure("METHOD_NOT_ALLOWED")));
      answer.headers.set("allow", allow);
      return answer;
    });
  }
}

/** Paths without a parameter first, so that `/v1/jobs/batch` is not taken for a job's id. */
function sortedPaths(): string[] {
  return [...new Set(REST_ROUTES.map((route) => route.path))].toSorted(
    (left, right) => Number(left.includes("{")) - Number(right.includes("{")),
  );
}

/** The public procedure that a path of the typed face names, if it names one. */
function toProcedureName(path: string): string | undefined {
  const name = path.slice(TRPC_PATH.length + 1);
  return Object.hasOwn(apiRouter._def.procedures, name) ? name : undefined;
}

function toPattern(path: string): string {
  return path.replaceAll(/\{(\w+)\}/gu, ":$1");
}
