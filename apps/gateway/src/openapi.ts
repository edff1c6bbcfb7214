import {
  ApiKey,
  ApiKeyPage,
  Artifact,
  Attempt,
  AttemptPage,
  AuditEvent,
  AuditPage,
  Batch,
  Budget,
  BudgetPage,
  CallbackEndpoint,
  CallbackEndpointPage,
  CallbackEvent,
  CallbackEventDetail,
  CallbackEventPage,
  CreateApiKey,
  CreatedApiKey,
  Download,
  ErrorEnvelope,
  Failure,
  IdempotencyKey,
  Job,
  JobCheck,
  JobPage,
  PatchCallbackEndpoint,
  Pin,
  PinOwner,
  PinPage,
  PutPin,
  PutPinResult,
  QuarantineRoute,
  RegisterCallbackEndpoint,
  RegisteredCallbackEndpoint,
  RouteInfo,
  RouteInfoPage,
  ROUTES,
  Stats,
  SubmitBatch,
  SubmitJob,
  Usage,
} from "@keble-scraper/contract";
import { z } from "zod";
import type { Access } from "./access.ts";
import type { RestRoute } from "./rest/rest-route.ts";
import { REST_ROUTES } from "./rest/rest-routes.ts";
import { apiRouter } from "./router.ts";

/** Bodies as callers write them, by their name in the document. */
const REQUESTS: Readonly<Record<string, z.ZodType>> = {
  SubmitJob,
  SubmitBatch,
  PutPin,
  RegisterCallbackEndpoint,
  PatchCallbackEndpoint,
  QuarantineRoute,
  CreateApiKey,
};

/** Bodies as we write them. */
const ANSWERS: Readonly<Record<string, z.ZodType>> = {
  Job,
  JobPage,
  JobCheck,
  Batch,
  Attempt,
  AttemptPage,
  AuditEvent,
  AuditPage,
  Artifact,
  Download,
  Pin,
  PinPage,
  PutPinResult,
  CallbackEndpoint,
  CallbackEndpointPage,
  RegisteredCallbackEndpoint,
  CallbackEvent,
  CallbackEventPage,
  CallbackEventDetail,
  RouteInfo,
  RouteInfoPage,
  Budget,
  BudgetPage,
  Usage,
  Stats,
  ApiKey,
  ApiKeyPage,
  CreatedApiKey,
  Failure,
  ErrorEnvelope,
};

/** Headers that every answer may carry beside its body, by status. */
const COMMON_HEADERS = {
  "x-request-id": {
    description: "The request's id: the caller's own when it was well-formed.",
    schema: { type: "string" },
  },
};

/** An OpenAPI 3.1 document. */
export type OpenApiDocument = {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
} & Readonly<Record<string, unknown>>;

/** The OpenAPI document of the REST face, made of the routes and the contract's schemas. Pure: equal calls, equal documents. */
export function buildOpenApi(): OpenApiDocument {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of REST_ROUTES) {
    (paths[route.path] ??= {})[route.method.toLowerCase()] = toOperation(route);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Keble Scraper",
      version: "1",
      description: "Fetches public web resources under a policy: routes, attempts, deadline and cost are a contract.",
    },
    security: [{ apiKey: [] }],
    paths,
    components: {
      securitySchemes: { apiKey: { type: "http", scheme: "bearer" } },
      schemas: { ...toComponents(REQUESTS, "input"), ...toComponents(ANSWERS, "output") },
    },
  };
}

function toOperation(route: RestRoute): Record<string, unknown> {
  const access = apiRouter[route.procedure]._def.meta as Access;
  const scope = access.scope === null ? "" : ` A service key needs the scope \`${access.scope}\`.`;
  return {
    operationId: route.procedure,
    summary: route.summary,
    description: `For keys of kind ${access.kinds.join(" or ")}.${scope}`,
    parameters: [...pathParameters(route), ...queryParameters(route), ...headerParameters(route)],
    ...(route.body === undefined
      ? {}
      : { requestBody: { required: route.bodyIs !== "OPTIONAL", content: toContent(referTo(REQUESTS, route.body)) } }),
    responses: {
      ...Object.fromEntries(
        Object.entries(route.answers).map(([status, schema]) => [
          status,
          {
            description: DESCRIPTIONS[status] ?? "",
            headers: { ...COMMON_HEADERS, ...answerHeaders(route, Number(status)) },
            ...(schema === null ? {} : { content: toContent(referTo(ANSWERS, schema)) }),
          },
        ]),
      ),
      default: {
        description: "An error. 429 and 503 carry `Retry-After`, 405 `Allow`.",
        headers: COMMON_HEADERS,
        content: toContent(referTo(ANSWERS, ErrorEnvelope)),
      },
    },
  };
}

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  200: "Done.",
  201: "Made. A secret in it is shown this once.",
  202: "Accepted.",
  204: "Done; there is nothing to say.",
  302: "To the bytes, by a signed URL.",
};

function pathParameters(route: RestRoute): unknown[] {
  return [...route.path.matchAll(/\{(\w+)\}/gu)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: pathSchema(name),
  }));
}

function pathSchema(name: string | undefined): unknown {
  if (name === "owner") {
    return inline(PinOwner);
  }
  return name === "route" ? { type: "string", enum: ROUTES } : { type: "string", format: "uuid" };
}

function queryParameters(route: RestRoute): unknown[] {
  if (route.query === undefined) {
    return [];
  }
  const { properties = {}, required = [] } = z.toJSONSchema(route.query, { io: "input" });
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema,
  }));
}

function headerParameters(route: RestRoute): unknown[] {
  return (route.takes ?? []).map((name) =>
    name === "prefer"
      ? {
          name: "Prefer",
          in: "header",
          description: "`wait=N`, 1 to 60 s: answer when the job has ended, or after that time.",
          schema: { type: "string", example: "wait=30" },
        }
      : {
          name: "Idempotency-Key",
          in: "header",
          description: "The same key and body give the same job, with `Idempotent-Replay: true`; another body is 409.",
          schema: inline(IdempotencyKey),
        },
  );
}

function answerHeaders(route: RestRoute, status: number): Record<string, unknown> {
  const text = (description: string) => ({ description, schema: { type: "string" } });
  return {
    ...(status === 302 || status === 201 || status === 202 || route.procedure === "submitJob"
      ? locationOf(route, text)
      : {}),
    ...(route.takes?.includes("prefer") ? { "Preference-Applied": text("The wait that was applied.") } : {}),
    ...(route.takes?.includes("idempotency-key")
      ? { "Idempotent-Replay": text("`true` when the job was there already, under the same key.") }
      : {}),
  };
}

function locationOf(route: RestRoute, text: (description: string) => unknown): Record<string, unknown> {
  const located: readonly string[] = ["submitJob", "downloadJobContent", "registerCallbackEndpoint"];
  return located.includes(route.procedure) ? { Location: text("Where it is.") } : {};
}

function toContent(schema: unknown): Record<string, unknown> {
  return { "application/json": { schema } };
}

/** A schema of ours has a name in the document; one that has none is a mistake in the routes. */
function referTo(components: Readonly<Record<string, z.ZodType>>, schema: z.ZodType): unknown {
  const name = Object.keys(components).find((key) => components[key] === schema);
  if (name === undefined) {
    throw new Error("a route uses a schema that the OpenAPI document does not name");
  }
  return { $ref: componentUri(name) };
}

function componentUri(name: string): string {
  return `#/components/schemas/${name}`;
}

function toComponents(
  components: Readonly<Record<string, z.ZodType>>,
  io: "input" | "output",
): Record<string, unknown> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(components)) {
    registry.add(schema, { id });
  }
  const { schemas } = z.toJSONSchema(registry, { uri: componentUri, io });
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, withoutIdentity(schema)]));
}

function inline(schema: z.ZodType): unknown {
  return withoutIdentity(z.toJSONSchema(schema, { io: "input" }));
}

/** A part of a document has neither a dialect nor an id of its own. */
function withoutIdentity(schema: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(schema).filter(([key]) => key !== "$schema" && key !== "$id" && key !== "id"),
  );
}
