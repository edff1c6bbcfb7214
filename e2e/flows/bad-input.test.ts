import { readFileSync } from "node:fs";
import { Socket } from "node:net";
import { request } from "undici";
import { afterAll, expect, test } from "vitest";
import { jobFor, openRig } from "../stack-fixtures.ts";

const rig = await openRig({ args: ["--processes=compact"] });
const { api, gatewayUrl, serviceKey } = rig.stack;
afterAll(() => rig[Symbol.asyncDispose]());

type Envelope = { error: { kind: string; code: string; disposition: string; message: string; requestId: string } };

/** What every error of both faces is: the family, a request id, and nothing of our insides. */
function expectEnvelope(
  answer: { status: number; headers: object; body: unknown },
  status: number,
  code: string,
): void {
  expect(answer.status).toBe(status);
  const { error } = answer.body as Envelope;
  expect(error).toMatchObject({ kind: "LOCAL", code });
  expect((answer.headers as Record<string, string>)["x-request-id"]).toBe(error.requestId);
  expect(JSON.stringify(error)).not.toMatch(/postgres|select |127\.0\.0\.1|at \w+ \(|node_modules|undici/i);
}

async function jobCount(): Promise<number> {
  const answer = await api.call("GET", "/v1/jobs?limit=200", { key: rig.stack.operatorKey });
  return (answer.body as { items: unknown[] }).items.length;
}

async function raw(path: string, method: "POST" | "GET" | "PUT", body: string, headers: Record<string, string> = {}) {
  const answer = await request(`${gatewayUrl}${path}`, {
    method,
    body: method === "GET" ? null : body,
    headers: { authorization: `Bearer ${serviceKey}`, "content-type": "application/json", ...headers },
  });
  return { status: answer.statusCode, headers: answer.headers, body: await answer.body.json() };
}

const good = jobFor(rig, "/");
const REST: [string, () => Promise<{ status: number; headers: object; body: unknown }>, number, string][] = [
  ["an unknown field", () => api.call("POST", "/v1/jobs", { body: { ...good, extra: 1 } }), 400, "INVALID_REQUEST"],
  ["a wrong type", () => api.call("POST", "/v1/jobs", { body: { ...good, routes: "DIRECT" } }), 400, "INVALID_REQUEST"],
  [
    "both deadlines",
    () => api.call("POST", "/v1/jobs", { body: { ...good, limits: { deadline: "ONE_HOUR", deadlineSeconds: 9 } } }),
    400,
    "INVALID_REQUEST",
  ],
  [
    "a forbidden header",
    () => api.call("POST", "/v1/jobs", { body: { target: { url: "https://example.com/", headers: { cookie: "a" } } } }),
    400,
    "INVALID_REQUEST",
  ],
  [
    "a body of 300 KiB",
    () => api.call("POST", "/v1/jobs", { body: { ...good, labels: { a: "x".repeat(300 * 1024) } } }),
    413,
    "PAYLOAD_TOO_LARGE",
  ],
  [
    "a URL of 10,000 characters",
    () => api.call("POST", "/v1/jobs", { body: { target: { url: `https://example.com/${"a".repeat(10_000)}` } } }),
    422,
    "TARGET_FORBIDDEN",
  ],
  [
    "a private target",
    () => api.call("POST", "/v1/jobs", { body: { target: { url: "http://169.254.169.254/latest" } } }),
    422,
    "TARGET_FORBIDDEN",
  ],
  [
    "another port of an allowed host",
    () => api.call("POST", "/v1/jobs", { body: { target: { url: "http://127.0.0.1:1/" } } }),
    422,
    "TARGET_FORBIDDEN",
  ],
  [
    "an unknown callback",
    () => api.call("POST", "/v1/jobs", { body: { ...good, callback: { endpoint: "nobody" } } }),
    422,
    "UNKNOWN_CALLBACK_ENDPOINT",
  ],
  [
    "a route that is not there",
    () => api.call("POST", "/v1/jobs", { body: { ...good, routes: ["RESIDENTIAL"] } }),
    422,
    "ROUTE_UNAVAILABLE",
  ],
  [
    "rendering",
    () => api.call("POST", "/v1/jobs", { body: { ...good, transport: "RENDER" } }),
    422,
    "ROUTE_UNAVAILABLE",
  ],
  ["JSON cut in half", () => raw("/v1/jobs", "POST", `{"target":{"url":"https://exam`), 400, "INVALID_REQUEST"],
  [
    "a body that is not JSON",
    () => raw("/v1/jobs", "POST", "url=1", { "content-type": "application/x-www-form-urlencoded" }),
    415,
    "UNSUPPORTED_MEDIA_TYPE",
  ],
  [
    "an idempotency key with a space",
    () => api.call("POST", "/v1/jobs", { body: good, headers: { "idempotency-key": "a b" } }),
    400,
    "INVALID_REQUEST",
  ],
  [
    "an idempotency key on a batch",
    () => api.call("POST", "/v1/jobs/batch", { body: { jobs: [good] }, headers: { "idempotency-key": "k" } }),
    400,
    "INVALID_REQUEST",
  ],
  ["an unknown path", () => api.call("GET", "/v1/nothing"), 404, "NOT_FOUND"],
  ["a foreign job's id", () => api.call("GET", `/v1/jobs/${crypto.randomUUID()}`), 404, "NOT_FOUND"],
  ["an id that is none", () => api.call("GET", "/v1/jobs/42"), 404, "NOT_FOUND"],
  ["a malformed cursor", () => api.call("GET", "/v1/jobs?cursor=%21%21"), 400, "INVALID_REQUEST"],
  [
    "a cursor of somebody else's making",
    () => api.call("GET", "/v1/jobs?cursor=bm90LWEtY3Vyc29y"),
    400,
    "INVALID_REQUEST",
  ],
  ["a limit of 201", () => api.call("GET", "/v1/jobs?limit=201"), 400, "INVALID_REQUEST"],
  ["an unknown query parameter", () => api.call("GET", "/v1/jobs?colour=red"), 400, "INVALID_REQUEST"],
  ["a wrong method", () => api.call("PUT", "/v1/jobs", { body: good }), 405, "METHOD_NOT_ALLOWED"],
  ["no key", () => api.call("POST", "/v1/jobs", { body: good, key: null }), 401, "UNAUTHENTICATED"],
  ["a bad key", () => api.call("POST", "/v1/jobs", { body: good, key: "not-a-key" }), 401, "UNAUTHENTICATED"],
  [
    "an operator who submits",
    () => api.call("POST", "/v1/jobs", { body: good, key: rig.stack.operatorKey }),
    403,
    "FORBIDDEN",
  ],
  ["a service that lists keys", () => api.call("GET", "/v1/api-keys"), 403, "FORBIDDEN"],
  ["a batch of none", () => api.call("POST", "/v1/jobs/batch", { body: { jobs: [] } }), 400, "INVALID_REQUEST"],
  [
    "a batch of 1,001",
    () => api.call("POST", "/v1/jobs/batch", { body: { jobs: Array.from({ length: 1_001 }, () => good) } }),
    400,
    "INVALID_REQUEST",
  ],
];

test.each(REST)("REST: %s answers the envelope and changes nothing", async (_what, send, status, code) => {
  const before = await jobCount();
  expectEnvelope(await send(), status, code);
  expect(await jobCount()).toBe(before);
});

test("a wrong method names the right ones", async () => {
  const answer = await api.call("DELETE", "/v1/jobs");
  expect(String(answer.headers["allow"])).toContain("POST");
});

test("every URL that the policy refuses answers TARGET_FORBIDDEN with one neutral text, over a batch and a check", async () => {
  const file = new URL("../../packages/egress/fixtures/url-vectors.json", import.meta.url);
  const vectors = JSON.parse(readFileSync(file, "utf8")) as { url: string; expect: string; stage: string }[];
  const refused = vectors.filter((vector) => vector.expect === "reject" && vector.stage !== "dns");
  expect(refused.length).toBeGreaterThan(100);
  const before = await jobCount();
  const answer = await api.call("POST", "/v1/jobs/batch", {
    body: { jobs: refused.slice(0, 1_000).map((vector) => ({ target: { url: vector.url } })) },
  });
  const { items } = answer.body as { items: { error?: { code: string; message: string } }[] };
  expect(new Set(items.map((item) => `${item.error?.code}: ${item.error?.message}`))).toEqual(
    new Set(["TARGET_FORBIDDEN: The target may not be fetched."]),
  );
  expect(await jobCount()).toBe(before);
  const check = await api.call("POST", "/v1/jobs/check", { body: { target: { url: refused[0]?.url } } });
  expect(check).toMatchObject({ status: 200, body: { allowed: false, error: { code: "TARGET_FORBIDDEN" } } });
});

const TRPC: [string, () => Promise<{ status: number; headers: object; body: unknown }>, number, string][] = [
  ["an unknown procedure", () => raw("/trpc/nothing", "GET", ""), 404, "NOT_FOUND"],
  ["JSON cut in half", () => raw("/trpc/submitJob", "POST", `{"target`), 400, "INVALID_REQUEST"],
  [
    "an unknown field",
    () => raw("/trpc/submitJob", "POST", JSON.stringify({ ...good, extra: 1 })),
    400,
    "INVALID_REQUEST",
  ],
  [
    "a private target",
    () => raw("/trpc/submitJob", "POST", JSON.stringify({ target: { url: "http://10.0.0.1/" } })),
    422,
    "TARGET_FORBIDDEN",
  ],
  [
    "a bad key",
    () => raw("/trpc/submitJob", "POST", JSON.stringify(good), { authorization: "Bearer nope" }),
    401,
    "UNAUTHENTICATED",
  ],
  ["a wrong method", () => raw("/trpc/submitJob", "GET", ""), 405, "METHOD_NOT_ALLOWED"],
];

test.each(TRPC)("tRPC: %s answers the same envelope in error.data.error", async (_what, send, status, code) => {
  const answer = await send();
  const { error } = answer.body as { error: { data: { error: Envelope["error"] }; message: string } };
  expectEnvelope({ ...answer, body: { error: error.data.error } }, status, code);
  expect(JSON.stringify(answer.body)).not.toMatch(/stack|node_modules/);
});

test("a request that never ends its head is cut off, and others are served meanwhile", async () => {
  const { port } = new URL(gatewayUrl);
  const slow = new Socket();
  slow.on("error", () => undefined);
  await new Promise<void>((resolve) => slow.connect(Number(port), "127.0.0.1", resolve));
  slow.write("GET /healthz HTTP/1.1\r\nHost: x\r\n");
  expect(await api.call("GET", "/healthz", { key: null })).toMatchObject({ status: 200 });
  slow.destroy();
});
