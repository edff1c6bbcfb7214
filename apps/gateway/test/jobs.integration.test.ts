import { localFailure, ok } from "@keble-scraper/contract";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ARTIFACT, ATTEMPT, DONE, DOWNLOAD, ENDPOINT, EVENT, ID, OTHER_ID, QUEUED } from "./fixtures.ts";
import { openGateway, type OpenGateway } from "./open-gateway.ts";

let open: OpenGateway;

beforeAll(async () => {
  open = await openGateway();
});
beforeEach(() => {
  open.services.calls.length = 0;
});
afterAll(() => open[Symbol.asyncDispose]());

const good = { target: { url: "https://a.example/" } };
const lastInput = () => open.services.calls.at(-1)?.input;
const principal = () => ({
  keyId: open.serviceKey.id,
  kind: "SERVICE",
  callerId: "acme",
  scopes: open.serviceKey.scopes,
});

describe("POST /v1/jobs", () => {
  it("answers 202 with the job and where it is, and passes the body on as it was sent", async () => {
    open.services.on("submitJob", () => ok({ job: QUEUED, replay: false }));
    const body = { ...good, unknownField: [1, null, { a: "ü" }], limits: { attemptBudget: 99 } };
    const answer = await open.send("POST", "/v1/jobs", { body });
    expect(answer.status).toBe(202);
    expect(answer.body).toEqual(QUEUED);
    expect(answer.headers.get("location")).toBe(`/v1/jobs/${ID}`);
    expect(answer.headers.get("idempotent-replay")).toBeNull();
    expect(answer.headers.get("preference-applied")).toBeNull();
    expect(lastInput()).toEqual({ principal: principal(), body });
  });

  it("answers 200 when the job has ended, and says what was replayed and waited for", async () => {
    open.services.on("submitJob", () => ok({ job: DONE, replay: true }));
    const headers = { "idempotency-key": "k~1", prefer: "respond-async, wait=7" };
    const answer = await open.send("POST", "/v1/jobs", { body: good, headers });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("idempotent-replay")).toBe("true");
    expect(answer.headers.get("preference-applied")).toBe("wait=7");
    expect(lastInput()).toEqual({ principal: principal(), body: good, idempotencyKey: "k~1" });
  });

  it("with a wait, answers the job that was accepted as soon as it ends, or as it was when nobody can tell", async () => {
    open.services.on("submitJob", () => ok({ job: QUEUED, replay: true }));
    open.services.on("getJob", () => ok(DONE));
    const submit = () => open.send("POST", "/v1/jobs", { body: good, headers: { prefer: "wait=7" } });
    const ended = await submit();
    expect(ended.status).toBe(200);
    expect(ended.body).toEqual(DONE);
    expect(ended.headers.get("idempotent-replay")).toBe("true");
    expect(lastInput()).toEqual({ principal: principal(), id: ID, waitSeconds: 7 });
    open.services.on("getJob", () => {
      throw new Error("a fault of intake's");
    });
    const unknown = await submit();
    expect(unknown.status).toBe(202);
    expect(unknown.body).toEqual(QUEUED);
  });

  it.each(["", "a b", "x".repeat(256), "é"])("refuses the idempotency key %j: 400", async (key) => {
    const answer = await open.send("POST", "/v1/jobs", { body: good, headers: { "idempotency-key": key } });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ error: { details: [{ path: "idempotency-key" }] } });
    expect(open.services.calls).toEqual([]);
  });

  it("takes a key of 255 characters", async () => {
    open.services.on("submitJob", () => ok({ job: QUEUED, replay: false }));
    const headers = { "idempotency-key": "x".repeat(255) };
    expect((await open.send("POST", "/v1/jobs", { body: good, headers })).status).toBe(202);
  });

  it.each(["idempotencyKey", "waitSeconds", "id"])("refuses %s in a body: it is a header's to say", async (field) => {
    const answer = await open.send("POST", "/v1/jobs", { body: { ...good, [field]: "x" } });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ error: { details: [{ path: field }] } });
  });

  it("on the typed face takes key and wait beside the body's fields", async () => {
    open.services.on("submitJob", () => ok({ job: QUEUED, replay: false }));
    const body = { ...good, idempotencyKey: "k", waitSeconds: 3 };
    const answer = await open.send("POST", "/trpc/submitJob", { body });
    expect(answer.body).toEqual({ result: { data: { job: QUEUED, replay: false } } });
    expect(open.services.calls.map(({ input }) => input)).toEqual([
      { principal: principal(), body: good, idempotencyKey: "k" },
      { principal: principal(), id: ID, waitSeconds: 3 },
    ]);
  });
});

describe("POST /v1/jobs/batch", () => {
  it("answers 202 with each item in its place, errors with the request's id", async () => {
    open.services.on("submitBatch", () =>
      ok({ items: [{ job: QUEUED }, { error: { ...localFailure("TARGET_FORBIDDEN") } }] }),
    );
    const jobs = [{ ...good, idempotencyKey: "a" }, 17];
    const answer = await open.send("POST", "/v1/jobs/batch", { body: { jobs } });
    expect(answer.status).toBe(202);
    expect(answer.body).toEqual({
      items: [
        { job: QUEUED },
        { error: { ...localFailure("TARGET_FORBIDDEN"), requestId: answer.headers.get("x-request-id") } },
      ],
    });
    expect(lastInput()).toEqual({ principal: principal(), jobs });
  });

  it.each([
    {},
    { jobs: [] },
    { jobs: {} },
    { jobs: [good], atomic: true },
    { jobs: Array.from({ length: 1_001 }, () => 1) },
  ])("refuses a batch that is none: 400", async (body) => {
    expect((await open.send("POST", "/v1/jobs/batch", { body })).status).toBe(400);
    expect(open.services.calls).toEqual([]);
  });
});

describe("POST /v1/jobs/check", () => {
  it("answers 200 whatever is found, and an error carries the request's id", async () => {
    const routes = [{ route: "DIRECT", available: true }];
    open.services.on("checkJob", () =>
      ok({ allowed: false, error: localFailure("TARGET_FORBIDDEN"), routes, worstCostMicros: 0 }),
    );
    const answer = await open.send("POST", "/v1/jobs/check", { body: good });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      allowed: false,
      error: { code: "TARGET_FORBIDDEN", requestId: answer.headers.get("x-request-id") },
      routes,
    });
    expect(lastInput()).toEqual({ principal: principal(), body: good });
  });
});

describe("reading jobs", () => {
  it("gives a service ten seconds to answer, and a wait what it asks for and five more", async () => {
    const leftMs: number[] = [];
    open.services.on("getJob", (_input, { deadlineAt }) => {
      leftMs.push(deadlineAt - Date.now());
      return ok(QUEUED);
    });
    await open.send("GET", `/v1/jobs/${ID}`);
    await open.send("GET", `/v1/jobs/${ID}`, { headers: { prefer: "wait=20" } });
    expect(leftMs.map((left) => Math.ceil(left / 1_000))).toEqual([10, 25]);
  });

  it("GET /v1/jobs/{id} waits when asked, and says so", async () => {
    open.services.on("getJob", () => ok(QUEUED));
    const plain = await open.send("GET", `/v1/jobs/${ID.toUpperCase()}`);
    expect([plain.status, plain.headers.get("preference-applied")]).toEqual([200, null]);
    expect(lastInput()).toEqual({ principal: principal(), id: ID });
    const waited = await open.send("GET", `/v1/jobs/${ID}`, { headers: { prefer: "wait=600" } });
    expect(waited.headers.get("preference-applied")).toBe("wait=60");
    expect(lastInput()).toEqual({ principal: principal(), id: ID, waitSeconds: 60 });
  });

  it("GET /v1/jobs reads its filters as text and numbers", async () => {
    open.services.on("listJobs", () => ok({ items: [QUEUED], nextCursor: "abc" }));
    const query = "?limit=7&status=FAILED&label=a:b&createdAfter=2026-11-30T00:00:00Z&cursor=xyz";
    const answer = await open.send("GET", `/v1/jobs${query}`);
    expect(answer.body).toEqual({ items: [QUEUED], nextCursor: "abc" });
    expect(lastInput()?.["query"]).toEqual({
      limit: 7,
      status: "FAILED",
      label: "a:b",
      createdAfter: "2026-11-30T00:00:00Z",
      cursor: "xyz",
    });
  });

  it.each([
    "limit=0",
    "limit=201",
    "limit=x",
    "limit=",
    "limit=1e1",
    "limit=1&limit=2",
    "nope=1",
    "status=x",
    "cursor=",
  ])("GET /v1/jobs?%s: 400", async (query) => {
    const answer = await open.send("GET", `/v1/jobs?${query}`);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ error: { details: [{ path: query.split("=")[0] }] } });
    expect(open.services.calls).toEqual([]);
  });

  it("a query where none is known: 400", async () => {
    expect((await open.send("GET", `/v1/jobs/${ID}?verbose=1`)).status).toBe(400);
  });

  it("GET /v1/jobs/{id}/attempts gives the ledger", async () => {
    open.services.on("listAttempts", () => ok({ items: [ATTEMPT], nextCursor: null }));
    expect((await open.send("GET", `/v1/jobs/${ID}/attempts?limit=1`)).body).toEqual({
      items: [ATTEMPT],
      nextCursor: null,
    });
    expect(lastInput()).toEqual({ principal: principal(), id: ID, query: { limit: 1 } });
  });

  it("another's job, as the service answers it, is 404", async () => {
    open.services.on("getJob", () => ({ ok: false, failure: localFailure("NOT_FOUND") }));
    expect((await open.send("GET", `/v1/jobs/${ID}`)).status).toBe(404);
  });

  it("an operator's principal has no caller", async () => {
    open.services.on("getJob", () => ok(QUEUED));
    await open.send("GET", `/v1/jobs/${ID}`, { key: open.operatorKey.secret });
    expect(lastInput()).toMatchObject({ principal: { kind: "OPERATOR", callerId: null } });
  });

  it("HEAD answers as GET does, without a body", async () => {
    const answer = await open.send("HEAD", `/v1/jobs/${ID}`);
    expect([answer.status, answer.body]).toEqual([200, {}]);
  });
});

describe("DELETE /v1/jobs/{id}", () => {
  it("answers 204 without a body, and tells intake who asks, for which request", async () => {
    open.services.on("deleteJob", () => ok(null));
    const answer = await open.send("DELETE", `/v1/jobs/${ID}`, { headers: { "x-request-id": "erase-1" } });
    expect([answer.status, answer.body]).toEqual([204, {}]);
    expect(lastInput()).toEqual({ principal: principal(), id: ID, requestId: "erase-1" });
    expect((await open.send("DELETE", `/v1/jobs/${ID}`, { key: open.operatorKey.secret })).status).toBe(204);
  });

  it("a job that may not go yet: 409", async () => {
    open.services.on("deleteJob", () => ({ ok: false, failure: localFailure("CONFLICT") }));
    expect((await open.send("DELETE", `/v1/jobs/${ID}`)).status).toBe(409);
  });

  it("needs jobs:write", async () => {
    const { secret } = await open.makeKey({ callerId: "acme", scopes: ["jobs:read"] });
    expect((await open.send("DELETE", `/v1/jobs/${ID}`, { key: secret })).status).toBe(403);
  });
});

describe("GET /v1/jobs/{id}/content", () => {
  it("redirects to a signed download that is audited as the job's content", async () => {
    open.services.on("getJob", () => ok(DONE));
    open.services.on("createDownload", () => ok(DOWNLOAD));
    const answer = await open.send("GET", `/v1/jobs/${ID}/content`, { headers: { "x-request-id": "r-9" } });
    expect([answer.status, answer.headers.get("location")]).toEqual([302, DOWNLOAD.url]);
    expect(lastInput()).toEqual({
      principal: principal(),
      artifactId: OTHER_ID,
      requestId: "r-9",
      purpose: "JOB_CONTENT",
    });
  });

  it("is 409 without an artifact and 410 when its bytes are gone", async () => {
    open.services.on("getJob", () => ok(QUEUED));
    expect((await open.send("GET", `/v1/jobs/${ID}/content`)).status).toBe(409);
    open.services.on("getJob", () => ok(DONE));
    open.services.on("createDownload", () => ({ ok: false, failure: localFailure("GONE") }));
    expect((await open.send("GET", `/v1/jobs/${ID}/content`)).status).toBe(410);
  });

  it("needs artifacts:download, or an operator's key", async () => {
    const key = await open.makeKey({ callerId: "acme", scopes: ["jobs:read", "artifacts:read"] });
    expect((await open.send("GET", `/v1/jobs/${ID}/content`, { key: key.secret })).status).toBe(403);
    open.services.on("createDownload", () => ok(DOWNLOAD));
    expect((await open.send("GET", `/v1/jobs/${ID}/content`, { key: open.operatorKey.secret })).status).toBe(302);
  });
});

describe("the other services", () => {
  it("artifacts are read and downloaded", async () => {
    open.services.on("getArtifact", () => ok(ARTIFACT));
    open.services.on("createDownload", () => ok(DOWNLOAD));
    expect((await open.send("GET", `/v1/artifacts/${OTHER_ID}`)).body).toEqual(ARTIFACT);
    const download = await open.send("POST", `/v1/artifacts/${OTHER_ID}/downloads`);
    expect([download.status, download.body]).toEqual([200, DOWNLOAD]);
    expect(lastInput()).toMatchObject({ artifactId: OTHER_ID, purpose: "ARTIFACT_DOWNLOAD" });
  });

  it("callback endpoints are registered, listed, read, changed and deleted", async () => {
    const secret = `whsec_${"A".repeat(43)}=`;
    open.services.on("registerEndpoint", () => ok({ ...ENDPOINT, secret }));
    open.services.on("listEndpoints", () => ok({ items: [ENDPOINT], nextCursor: null }));
    open.services.on("getEndpoint", () => ok(ENDPOINT));
    open.services.on("patchEndpoint", () => ok({ ...ENDPOINT, enabled: false }));
    open.services.on("deleteEndpoint", () => ok(null));
    const path = "/v1/callback-endpoints";
    const input = { name: "orders", url: "https://receiver.example/" };
    const made = await open.send("POST", path, { body: input });
    expect([made.status, made.body]).toEqual([201, { ...ENDPOINT, secret }]);
    expect(lastInput()).toEqual({ principal: principal(), input });
    await open.send("GET", `${path}?name=orders&callerId=acme`);
    expect(lastInput()?.["query"]).toEqual({ name: "orders", callerId: "acme", limit: 50 });
    expect((await open.send("GET", `${path}/${ID}`)).body).toEqual(ENDPOINT);
    expect((await open.send("PATCH", `${path}/${ID}`, { body: { enabled: false } })).body).toMatchObject({
      enabled: false,
    });
    expect(lastInput()).toEqual({ principal: principal(), id: ID, patch: { enabled: false } });
    expect((await open.send("PATCH", `${path}/${ID}`, { body: {} })).status).toBe(400);
    expect((await open.send("PATCH", `${path}/${ID}`, { body: { id: OTHER_ID, enabled: true } })).status).toBe(400);
    expect((await open.send("DELETE", `${path}/${ID}?force=true`)).status).toBe(204);
    expect(lastInput()).toEqual({ principal: principal(), id: ID, force: true });
    await open.send("DELETE", `${path}/${ID}`);
    expect(lastInput()).toMatchObject({ force: false });
    expect((await open.send("DELETE", `${path}/${ID}?force=yes`)).status).toBe(400);
  });

  it("callback events are listed and read", async () => {
    const { deliveries, ...listed } = EVENT;
    open.services.on("listEvents", () => ok({ items: [listed], nextCursor: null }));
    open.services.on("getEvent", () => ok(EVENT));
    const list = await open.send("GET", `/v1/callback-events?state=PENDING&endpointId=${ID}`);
    expect(list.body).toEqual({ items: [listed], nextCursor: null });
    expect((await open.send("GET", `/v1/callback-events/${ID}`)).body).toEqual({ ...listed, deliveries });
  });
});

describe("a caller who leaves", () => {
  it("ends the wait at the service", async () => {
    let left: (reason: unknown) => void = () => undefined;
    const ended = new Promise((resolve) => (left = resolve));
    let begun: () => void = () => undefined;
    const waiting = new Promise<void>((resolve) => (begun = resolve));
    open.services.on("getJob", async (_, { signal }) => {
      begun();
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      left("aborted");
      return ok(QUEUED);
    });
    const leaving = new AbortController();
    const answer = open.send("GET", `/v1/jobs/${ID}`, { headers: { prefer: "wait=60" }, signal: leaving.signal });
    await waiting;
    leaving.abort();
    await expect(answer).rejects.toThrow(/abort/i);
    expect(await ended).toBe("aborted");
    expect(open.log()).not.toContain("request.faulted");
  });

  it("does not hold up those who do not wait, however many wait", async () => {
    const leaving = new AbortController();
    let waiting = 0;
    let all: () => void = () => undefined;
    const reached = new Promise<void>((resolve) => (all = resolve));
    open.services.on("getJob", async (input, { signal }) => {
      if (input["waitSeconds"] === undefined) {
        return ok(QUEUED);
      }
      waiting += 1;
      if (waiting === 100) {
        all();
      }
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      return ok(QUEUED);
    });
    const waits = Array.from({ length: 100 }, () =>
      open
        .send("GET", `/v1/jobs/${ID}`, { headers: { prefer: "wait=60" }, signal: leaving.signal })
        .catch(() => undefined),
    );
    await reached;
    expect((await open.send("GET", `/v1/jobs/${ID}`)).status).toBe(200);
    leaving.abort();
    await Promise.all(waits);
  });

  // The stop has the whole grace: a wait that went on would hold it for a minute, or be cut without an answer.
  it.each([
    ["GET", `/v1/jobs/${ID}`, 200],
    ["POST", "/v1/jobs", 202],
  ])("of a %s is answered with the job's current state when the gateway stops", async (method, path, status) => {
    await using alone = await openGateway();
    let begun: () => void = () => undefined;
    const waiting = new Promise<void>((resolve) => (begun = resolve));
    alone.services.on("submitJob", () => ok({ job: QUEUED, replay: false }));
    alone.services.on("getJob", async (input, { signal }) => {
      if (input["waitSeconds"] === undefined) {
        return ok({ ...QUEUED, status: "RUNNING" });
      }
      begun();
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      return ok(QUEUED);
    });
    const options = { headers: { prefer: "wait=60" }, ...(method === "POST" ? { body: good } : {}) };
    const answer = alone.send(method, path, options);
    await waiting;
    await alone.gateway.stop(60_000);
    expect(await answer).toMatchObject({ status, body: { status: "RUNNING" } });
  });
});
