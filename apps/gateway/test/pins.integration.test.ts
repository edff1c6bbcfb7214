import { failed, localFailure, ok } from "@keble-scraper/contract";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openGateway, type OpenGateway } from "./open-gateway.ts";

let open: OpenGateway;

const ID = "0193a000-0000-7000-8000-00000000000a";
const PATH = `/v1/artifacts/${ID}/pins/orders:eu-1`;
const PIN = {
  artifactId: ID,
  owner: "orders:eu-1",
  retentionRevision: 3,
  expiresAt: null,
  createdAt: "2026-11-30T17:00:00.000Z",
  updatedAt: "2026-11-30T17:00:00.000Z",
};

beforeAll(async () => {
  open = await openGateway();
});
beforeEach(() => {
  open.services.calls.length = 0;
  open.services.on("putPin", () => ok({ pin: PIN, applied: true }));
  open.services.on("listPins", () => ok({ items: [PIN], nextCursor: null }));
});
afterAll(() => open[Symbol.asyncDispose]());

const lastInput = () => open.services.calls.at(-1)?.input;

describe("PUT /v1/artifacts/{id}/pins/{owner}", () => {
  it("hands the policy on with the owner of the path, and answers the pin as it stands", async () => {
    const body = { retentionRevision: 3, expiresAt: null };
    const answer = await open.send("PUT", PATH, { body });
    expect([answer.status, answer.body]).toEqual([200, { pin: PIN, applied: true }]);
    expect(lastInput()).toMatchObject({
      artifactId: ID,
      owner: "orders:eu-1",
      pin: body,
      requestId: expect.stringMatching(/./) as string,
    });
    const typed = await open.send("POST", "/trpc/putPin", { body: { id: ID, owner: "a", ...body } });
    expect(typed.body).toEqual({ result: { data: answer.body } });
    expect(lastInput()).toMatchObject({ owner: "a" });
  });

  it.each([
    ["missing", {}],
    ["zero", { retentionRevision: 0 }],
    ["negative", { retentionRevision: -1 }],
    ["a fraction", { retentionRevision: 1.5 }],
    ["over 2^53-1", { retentionRevision: 2 ** 53 }],
    ["a text", { retentionRevision: "3" }],
    ["null", { retentionRevision: null }],
  ])("A8 a revision that is %s: 400", async (_what, revision) => {
    const answer = await open.send("PUT", PATH, { body: { expiresAt: null, ...revision } });
    expect([answer.status, open.services.calls]).toEqual([400, []]);
    expect(answer.body).toMatchObject({ error: { code: "INVALID_REQUEST", details: [{ path: "retentionRevision" }] } });
  });

  it.each([
    ["is missing", {}, "expiresAt"],
    ["is no time", { expiresAt: "tomorrow" }, "expiresAt"],
    ["is a number", { expiresAt: 1 }, "expiresAt"],
    ["is beside an owner", { expiresAt: null, owner: "other" }, "owner"],
    ["is beside an unknown field", { expiresAt: null, note: "x" }, "note"],
  ])("an expiry that %s: 400", async (_what, expiry, path) => {
    const answer = await open.send("PUT", PATH, { body: { retentionRevision: 1, ...expiry } });
    expect([answer.status, open.services.calls]).toEqual([400, []]);
    expect(answer.body).toMatchObject({ error: { details: [{ path }] } });
  });

  it("takes 2^53-1, and times with an offset", async () => {
    const body = { retentionRevision: Number.MAX_SAFE_INTEGER, expiresAt: "2030-01-01T02:00:00+02:00" };
    expect((await open.send("PUT", PATH, { body })).status).toBe(200);
    expect(lastInput()).toMatchObject({ pin: body });
  });

  it.each([
    ["too long", "o".repeat(129)],
    ["spaced", "a%20b"],
    ["with a slash", "a%2Fb"],
    ["badly escaped", "%zz"],
  ])("an owner that is %s: 400", async (_what, owner) => {
    const path = `/v1/artifacts/${ID}/pins/${owner}`;
    const answer = await open.send("PUT", path, { body: { retentionRevision: 1, expiresAt: null } });
    expect([answer.status, open.services.calls]).toEqual([400, []]);
    expect(answer.body).toMatchObject({ error: { details: [{ path: "owner" }] } });
  });

  it("passes on what the service refuses: 404, 409, 410", async () => {
    for (const [code, status] of [
      ["NOT_FOUND", 404],
      ["CONFLICT", 409],
      ["GONE", 410],
    ] as const) {
      open.services.on("putPin", () => failed(localFailure(code)));
      const answer = await open.send("PUT", PATH, { body: { retentionRevision: 1, expiresAt: null } });
      expect([answer.status, answer.body]).toMatchObject([status, { error: { code } }]);
    }
    const answer = await open.send("PUT", "/v1/artifacts/none/pins/a", {
      body: { retentionRevision: 1, expiresAt: null },
    });
    expect(answer.status).toBe(404);
  });

  it("is a service's with artifacts:pin alone, and no other method's", async () => {
    const body = { retentionRevision: 1, expiresAt: null };
    const operator = await open.send("PUT", PATH, { key: open.operatorKey.secret, body });
    expect([operator.status, operator.body]).toMatchObject([403, { error: { code: "FORBIDDEN" } }]);
    expect((await open.send("PUT", PATH, { key: null, body })).status).toBe(401);
    const wrong = await open.send("DELETE", PATH);
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "PUT"]);
    expect(open.services.calls).toEqual([]);
  });
});

describe("GET /v1/artifacts/{id}/pins", () => {
  it("lists them for their caller and for operators, page by page", async () => {
    const answer = await open.send("GET", `/v1/artifacts/${ID}/pins?limit=2&cursor=b3duZXI`);
    expect([answer.status, answer.body]).toEqual([200, { items: [PIN], nextCursor: null }]);
    expect(lastInput()).toMatchObject({ artifactId: ID, query: { limit: 2, cursor: "b3duZXI" } });
    const operator = await open.send("GET", `/v1/artifacts/${ID}/pins`, { key: open.operatorKey.secret });
    expect(operator.status).toBe(200);
    expect((await open.send("GET", `/v1/artifacts/${ID}/pins?limit=0`)).status).toBe(400);
  });
});
