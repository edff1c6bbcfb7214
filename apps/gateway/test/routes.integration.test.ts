import { localFailure, ok } from "@keble-scraper/contract";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { BUDGET, ROUTE_INFO, STATS, USAGE } from "./fixtures.ts";
import { openGateway, type OpenGateway, type SendOptions } from "./open-gateway.ts";

let open: OpenGateway;

beforeAll(async () => {
  open = await openGateway();
});
beforeEach(() => {
  open.services.calls.length = 0;
  open.services.on("getRouteInfos", () => ok({ items: [ROUTE_INFO], nextCursor: null }));
  open.services.on("quarantineRoute", () => ok(ROUTE_INFO));
  open.services.on("releaseRoute", () => ok(ROUTE_INFO));
  open.services.on("listBudgets", () => ok({ items: [BUDGET], nextCursor: null }));
  open.services.on("getUsage", () => ok(USAGE));
  open.services.on("getStats", () => ok(STATS));
});
afterAll(() => open[Symbol.asyncDispose]());

const lastInput = () => open.services.calls.at(-1)?.input;
const operator = () => ({ keyId: open.operatorKey.id, kind: "OPERATOR", callerId: null, scopes: [] });
const asOperator = (method: string, path: string, options: SendOptions = {}) =>
  open.send(method, path, { key: open.operatorKey.secret, ...options });

describe("GET /v1/routes", () => {
  it("shows every way out to operators, as a list", async () => {
    const answer = await asOperator("GET", "/v1/routes");
    expect([answer.status, answer.body]).toEqual([200, { items: [ROUTE_INFO], nextCursor: null }]);
    expect(lastInput()).toEqual({ principal: operator() });
    const typed = await asOperator("GET", "/trpc/listRoutes");
    expect(typed.body).toEqual({ result: { data: answer.body } });
  });

  it("knows no parameter: 400", async () => {
    const answer = await asOperator("GET", "/v1/routes?health=HEALTHY");
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ error: { details: [{ path: "health" }] } });
  });
});

describe("GET /v1/stats", () => {
  it("shows operators how the deployment is doing, on both faces, and knows no parameter", async () => {
    const answer = await asOperator("GET", "/v1/stats");
    expect([answer.status, answer.body]).toEqual([200, STATS]);
    expect(lastInput()).toEqual({ principal: operator() });
    expect((await asOperator("GET", "/trpc/getStats")).body).toEqual({ result: { data: STATS } });
    expect((await asOperator("GET", "/v1/stats?hours=1")).status).toBe(400);
  });
});

describe("what only operators may", () => {
  it.each([
    ["GET", "/v1/routes"],
    ["POST", "/v1/routes/DIRECT/quarantine"],
    ["POST", "/v1/routes/DIRECT/release"],
    ["GET", "/v1/budgets"],
    ["GET", "/v1/stats"],
  ])("%s %s: 403 to a service, saying whose key it needs, and 401 without a key", async (method, path) => {
    const denied = await open.send(method, path);
    expect(denied.status).toBe(403);
    expect(denied.body).toMatchObject({
      error: { code: "FORBIDDEN", details: [{ path: "", message: "This needs an operator's key." }] },
    });
    expect((await open.send(method, path, { key: null })).status).toBe(401);
    expect(open.services.calls).toEqual([]);
  });
});

describe("POST /v1/routes/{route}/quarantine", () => {
  const path = "/v1/routes/UNLOCKER/quarantine";

  it("needs no body, and answers the route as it is then", async () => {
    const answer = await asOperator("POST", path);
    expect([answer.status, answer.body]).toEqual([200, ROUTE_INFO]);
    expect(lastInput()).toEqual({ principal: operator(), route: "UNLOCKER", input: {} });
    expect((await asOperator("POST", path, { body: {} })).status).toBe(200);
  });

  it("passes on a note and an end, as the typed face does", async () => {
    const body = { note: "the bill", seconds: 60 };
    await asOperator("POST", path, { body });
    expect(lastInput()).toEqual({ principal: operator(), route: "UNLOCKER", input: body });
    const until = "2030-01-01T00:00:00Z";
    await asOperator("POST", "/trpc/quarantineRoute", { body: { route: "DIRECT", until } });
    expect(lastInput()).toEqual({ principal: operator(), route: "DIRECT", input: { until } });
  });

  it.each([
    [{ seconds: 0 }, "seconds"],
    [{ seconds: 60, until: "2030-01-01T00:00:00Z" }, "until"],
    [{ until: "soon" }, "until"],
    [{ note: 1 }, "note"],
    [{ why: "x" }, "why"],
    // The path says which route: a body that says another would win.
    [{ route: "DIRECT" }, "route"],
  ])("refuses the body %j: 400, naming %s", async (body, field) => {
    const answer = await asOperator("POST", path, { body });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ error: { details: [{ path: field }] } });
    expect(open.services.calls).toEqual([]);
  });

  it.each(["/v1/routes/TELEPATHY/quarantine", "/v1/routes/unlocker/release", "/v1/routes/%00/release"])(
    "%s names no route: 404",
    async (unknown) => {
      const answer = await asOperator("POST", unknown);
      expect(answer.status).toBe(404);
      expect(answer.body).toMatchObject({ error: { code: "NOT_FOUND" } });
      expect(open.services.calls).toEqual([]);
    },
  );

  it("is a POST: 405 with Allow otherwise", async () => {
    const answer = await asOperator("GET", path);
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "POST"]);
  });

  it("what fetching refuses is refused: an end that is past is 400", async () => {
    const details = [{ path: "until", message: "This moment is past." }];
    open.services.on("quarantineRoute", () => ({
      ok: false,
      failure: { ...localFailure("INVALID_REQUEST"), details },
    }));
    const answer = await asOperator("POST", path, { body: { until: "2020-01-01T00:00:00Z" } });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ error: { details } });
  });
});

describe("POST /v1/routes/{route}/release", () => {
  it("takes no fields, and answers the route as it is then", async () => {
    const answer = await asOperator("POST", "/v1/routes/UNLOCKER/release");
    expect([answer.status, answer.body]).toEqual([200, ROUTE_INFO]);
    expect(lastInput()).toEqual({ principal: operator(), route: "UNLOCKER" });
    expect((await asOperator("POST", "/v1/routes/UNLOCKER/release", { body: { note: "x" } })).status).toBe(400);
  });
});

describe("GET /v1/budgets", () => {
  it("reads its filters", async () => {
    const query = "?limit=7&scope=CALLER&name=acme&period=MONTH&startsOn=2026-11-01&cursor=xyz";
    const answer = await asOperator("GET", `/v1/budgets${query}`);
    expect([answer.status, answer.body]).toEqual([200, { items: [BUDGET], nextCursor: null }]);
    expect(lastInput()).toEqual({
      principal: operator(),
      query: { limit: 7, scope: "CALLER", name: "acme", period: "MONTH", startsOn: "2026-11-01", cursor: "xyz" },
    });
  });

  it.each(["period=YEAR", "scope=JOB", "startsOn=2026-11-31", "limit=0", "route=DIRECT", "name=a%20b"])(
    "?%s: 400",
    async (query) => {
      const answer = await asOperator("GET", `/v1/budgets?${query}`);
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject({ error: { details: [{ path: query.split("=")[0] }] } });
    },
  );
});

describe("GET /v1/usage", () => {
  it("is for a service's own caller and for operators, by route unless a label is asked for", async () => {
    const answer = await open.send("GET", "/v1/usage");
    expect([answer.status, answer.body]).toEqual([200, USAGE]);
    expect(lastInput()).toMatchObject({
      principal: { kind: "SERVICE", callerId: "acme" },
      query: { groupBy: "route" },
    });
    const query = "?from=2026-11-01T00:00:00Z&to=2026-11-30T00:00:00Z&groupBy=label:batch&callerId=acme";
    expect((await asOperator("GET", `/v1/usage${query}`)).status).toBe(200);
    expect(lastInput()?.["query"]).toEqual({
      from: "2026-11-01T00:00:00Z",
      to: "2026-11-30T00:00:00Z",
      groupBy: "label:batch",
      callerId: "acme",
    });
  });

  it("needs the scope jobs:read", async () => {
    const key = await open.makeKey({ callerId: "acme", scopes: ["jobs:write"] });
    const answer = await open.send("GET", "/v1/usage", { key: key.secret });
    expect(answer.status).toBe(403);
    expect(answer.body).toMatchObject({ error: { details: [{ message: "This needs the scope jobs:read." }] } });
  });

  it.each(["groupBy=caller", "groupBy=label:", "from=yesterday", "to=2026-11-30", "by=route", "limit=5"])(
    "?%s: 400",
    async (query) => {
      const answer = await open.send("GET", `/v1/usage?${query}`);
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject({ error: { details: [{ path: query.split("=")[0] }] } });
    },
  );
});

describe("when fetching is away", () => {
  it("jobs are taken and read all the same, and the rest is 503", async () => {
    await using alone = await openGateway();
    alone.services.on("getRouteInfos", () => {
      throw new Error("a fault of fetching's");
    });
    const answer = await alone.send("GET", "/v1/routes", { key: alone.operatorKey.secret });
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
    expect(answer.body).toMatchObject({ error: { code: "DEPENDENCY_UNAVAILABLE" } });
  });
});
