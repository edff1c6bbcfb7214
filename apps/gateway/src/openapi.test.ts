import { describe, expect, it } from "vitest";
import { buildOpenApi } from "./openapi.ts";
import { REST_ROUTES } from "./rest/rest-routes.ts";
import { apiRouter } from "./router.ts";

describe("the OpenAPI document", () => {
  const document = buildOpenApi();
  const text = JSON.stringify(document);

  it("is 3.1, the same each time, and has every route", () => {
    expect(document.openapi).toBe("3.1.0");
    expect(JSON.stringify(buildOpenApi())).toBe(text);
    for (const { path, method } of REST_ROUTES) {
      expect(document.paths[path]).toHaveProperty(method.toLowerCase());
    }
  });

  it("refers only to schemas it holds", () => {
    const schemas = (document["components"] as { schemas: object }).schemas;
    const referred = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map(([, uri]) => uri);
    expect(referred.length).toBeGreaterThan(50);
    const known = new Set(Object.keys(schemas).map((name) => `#/components/schemas/${name}`));
    expect(referred.filter((uri) => !known.has(uri ?? ""))).toEqual([]);
  });

  it("documents what a caller must know of a submit", () => {
    expect(document.paths["/v1/jobs"]).toMatchObject({
      post: {
        operationId: "submitJob",
        requestBody: { content: { "application/json": { schema: { $ref: "#/components/schemas/SubmitJob" } } } },
        responses: {
          200: { headers: { "Idempotent-Replay": {}, Location: {}, "Preference-Applied": {} } },
          202: {},
          default: {},
        },
      },
    });
  });
});

describe("the two faces", () => {
  it("have the same operations", () => {
    const typed = Object.keys(apiRouter._def.procedures).toSorted();
    expect(REST_ROUTES.map((route) => route.procedure as string).toSorted()).toEqual(typed);
  });
});
