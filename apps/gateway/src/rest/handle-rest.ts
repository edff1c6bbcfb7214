import { Id, IdempotencyKey, localFailure, type Principal, type Result, ROUTES } from "@keble-scraper/contract";
import { type Access, findDenial } from "../access.ts";
import { ApiFailure, invalidRequest } from "../api-failure.ts";
import type { GatewayParts } from "../context.ts";
import { parseJson } from "../http/parse-json.ts";
import { BODY_BYTES_MAX, readJsonBody } from "../http/read-body.ts";
import { createCallerFactory } from "../public-trpc.ts";
import { apiRouter } from "../router.ts";
import { parsePreferredWait } from "./parse-prefer.ts";
import { createQueryReader } from "./read-query.ts";
import type { RestRoute } from "./rest-route.ts";

/** A request as the adapter needs it. */
export type RestRequest = {
  readonly request: Request;
  readonly requestId: string;
  readonly params: Readonly<Record<string, string>>;
  /** Told as soon as it is known, for the log. */
  readonly onPrincipal: (principal: Principal) => void;
};

const createCaller = createCallerFactory(apiRouter);

/**
 * Makes the handler of one route: it puts path, query, headers and body together to the procedure's input, calls it, and
 * writes its answer. Who may not call is refused before the body is read. Failures are thrown.
 */
export function createRestHandler(route: RestRoute, parts: GatewayParts): (call: RestRequest) => Promise<Response> {
  const access = apiRouter[route.procedure]._def.meta as Access;
  const readQuery = createQueryReader(route.query);

  return async ({ request, requestId, params, onPrincipal }) => {
    const caller: Result<Principal> = await parts.keys.authenticate(request.headers.get("authorization") ?? undefined);
    if (!caller.ok) {
      throw new ApiFailure(caller.failure);
    }
    onPrincipal(caller.value);
    const denied = findDenial(caller.value, access);
    if (denied !== null) {
      throw new ApiFailure(denied);
    }
    const taken = takeHeaders(route, request.headers);
    const input = mergeInput([
      readNames(params),
      readQuery(new URL(request.url).searchParams),
      taken,
      await readFields(route, request),
    ]);
    const procedures = createCaller({ ...parts, requestId, caller }, { signal: request.signal });
    const call = procedures[route.procedure] as (input: unknown) => Promise<unknown>;
    const answer = route.answer(await call(input));
    const headers = new Headers(answer.headers);
    if (taken["waitSeconds"] !== undefined) {
      headers.set("preference-applied", `wait=${taken["waitSeconds"]}`);
    }
    return answer.body === undefined
      ? new Response(null, { status: answer.status, headers })
      : Response.json(answer.body, { status: answer.status, headers });
  };
}

/**
 * An id that is none names nothing, nor does a route that nobody knows. An owner's name is the caller's to choose: the procedure
 * parses it.
 */
function readNames(params: Readonly<Record<string, string>>): Record<string, string> {
  for (const [name, text] of Object.entries(params)) {
    if (name === "owner") {
      continue;
    }
    const isOne = name === "route" ? ROUTES.some((route) => route === text) : Id.safeParse(text).success;
    if (!isOne) {
      throw new ApiFailure(localFailure("NOT_FOUND"));
    }
  }
  return params;
}

function takeHeaders(route: RestRoute, headers: Headers): { idempotencyKey?: string; waitSeconds?: number } {
  const takes = route.takes ?? [];
  // Ignored, it would let a caller believe that a second try makes nothing twice.
  if (route.keyed === "ITEMS" && headers.has("idempotency-key")) {
    throw invalidRequest("idempotency-key", "Give each job of the batch a key of its own.");
  }
  const key = takes.includes("idempotency-key") ? headers.get("idempotency-key") : null;
  if (key !== null && !IdempotencyKey.safeParse(key).success) {
    throw invalidRequest("idempotency-key", "The header takes 1 to 255 visible ASCII characters.");
  }
  const waitSeconds = takes.includes("prefer") ? parsePreferredWait(headers.get("prefer") ?? undefined) : undefined;
  return {
    ...(key === null ? {} : { idempotencyKey: key }),
    ...(waitSeconds === undefined ? {} : { waitSeconds }),
  };
}

async function readFields(route: RestRoute, request: Request): Promise<Record<string, unknown>> {
  if (request.method === "GET" || request.method === "HEAD") {
    return {};
  }
  const bytes = await readJsonBody(request, route.bodyBytesMax ?? BODY_BYTES_MAX);
  if (bytes === null && (route.body === undefined || route.bodyIs === "OPTIONAL")) {
    return {};
  }
  const body = bytes === null ? undefined : parseJson(bytes);
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw invalidRequest("", "The body must be a JSON object.");
  }
  const fields = body as Record<string, unknown>;
  const [stray] = Object.keys(fields);
  // Each place has its own names: a body may not say what is a header's or the path's to say.
  const foreign = route.body === undefined ? stray : FOREIGN_NAMES.find((name) => Object.hasOwn(fields, name));
  if (foreign !== undefined) {
    throw invalidRequest(foreign, "There is no such field.");
  }
  return fields;
}

/** Names that procedures take beside a body's fields. */
const FOREIGN_NAMES = ["id", "route", "owner", "idempotencyKey", "waitSeconds"];

function mergeInput(parts: readonly Readonly<Record<string, unknown>>[]): Record<string, unknown> {
  return Object.assign({}, ...parts) as Record<string, unknown>;
}
