import { connect } from "node:net";
import { request as httpRequest } from "node:http";
import { ErrorEnvelope, localFailure, ok } from "@keble-scraper/contract";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ID, QUEUED } from "./fixtures.ts";
import { type Answer, openGateway, type OpenGateway } from "./open-gateway.ts";

let open: OpenGateway;

beforeAll(async () => {
  open = await openGateway();
});
beforeEach(() => {
  open.services.calls.length = 0;
  open.services.on("submitJob", () => ok({ job: QUEUED, replay: false }));
  open.services.on("submitBatch", (input) => ok({ items: (input["jobs"] as unknown[]).map(() => ({ job: QUEUED })) }));
});
afterAll(() => open[Symbol.asyncDispose]());

const good = { target: { url: "https://a.example/" } };

/** The error of a REST answer, checked against the contract. */
function errorOf(answer: Answer) {
  expect(answer.headers.get("content-type")).toContain("application/json");
  const { error } = ErrorEnvelope.parse(answer.body);
  expect(error.requestId).toBe(answer.headers.get("x-request-id"));
  return error;
}

/** The error of an answer of the typed face. */
function trpcErrorOf(answer: Answer) {
  const { data } = answer.body["error"] as { data: { error: unknown } };
  const { error } = ErrorEnvelope.parse({ error: data.error });
  expect(error.requestId).toBe(answer.headers.get("x-request-id"));
  expect(JSON.stringify(answer.body)).not.toMatch(/stack|\.ts:|node_modules/);
  return error;
}

describe("a request id", () => {
  it("is the caller's when well-formed, else one of ours, and goes with the call", async () => {
    const given = await open.send("POST", "/v1/jobs", { body: good, headers: { "x-request-id": "abc.DEF-1_2" } });
    expect(given.headers.get("x-request-id")).toBe("abc.DEF-1_2");
    expect(open.services.calls[0]?.requestId).toBe("abc.DEF-1_2");
    for (const odd of ["a b", "x".repeat(129), "a/b", "é".normalize("NFD").slice(0, 1) + "{}"]) {
      const answer = await open.send("GET", "/healthz", { headers: { "x-request-id": odd } });
      expect(answer.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    }
  });
});

describe("who may call", () => {
  it.each([
    ["no header", null],
    ["a wrong key", "ks_live_wrong"],
    ["an empty key", " "],
    ["a key with a blank", "a b"],
  ])("nobody with %s: 401, before anything else is looked at", async (_, key) => {
    const answer = await open.send("POST", "/v1/jobs", { key, body: "{" });
    expect(answer.status).toBe(401);
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    expect(errorOf(answer).code).toBe("UNAUTHENTICATED");
  });

  it("a key without the scope: 403, and the scope is named", async () => {
    const key = await open.makeKey({ callerId: "acme", scopes: ["jobs:read"] });
    const answer = await open.send("POST", "/v1/jobs", { key: key.secret, body: good });
    expect(answer.status).toBe(403);
    expect(errorOf(answer)).toMatchObject({
      code: "FORBIDDEN",
      details: [{ path: "", message: "This needs the scope jobs:write." }],
    });
    expect(open.services.calls).toEqual([]);
  });

  it("an operator submits nothing: 403 on both faces", async () => {
    const key = open.operatorKey.secret;
    for (const path of ["/v1/jobs", "/v1/jobs/batch", "/v1/jobs/check"]) {
      expect(errorOf(await open.send("POST", path, { key, body: { jobs: [good] } })).code).toBe("FORBIDDEN");
    }
    const typed = await open.send("POST", "/trpc/submitJob", { key, body: good });
    expect(typed.status).toBe(403);
    expect(trpcErrorOf(typed).code).toBe("FORBIDDEN");
    expect(open.services.calls).toEqual([]);
  });
});

describe("what is not there", () => {
  it.each(["/", "/v1", "/v1/nope", "/v1/jobs/", "/v2/jobs", "/docs", "/console"])(
    "%s answers 404 with the envelope",
    async (path) => {
      const answer = await open.send("GET", path);
      expect(answer.status).toBe(404);
      expect(errorOf(answer).code).toBe("NOT_FOUND");
    },
  );

  it.each([
    ["POST", "/v1/callback-events/replay"],
    ["POST", `/v1/callback-events/${ID}/replay`],
    ["POST", `/v1/callback-events/${ID}/discard`],
    ["POST", `/v1/callback-endpoints/${ID}/rotate-secret`],
    ["POST", `/v1/callback-endpoints/${ID}/test`],
  ])("%s %s is not served yet: 404", async (method, path) => {
    expect((await open.send(method, path)).status).toBe(404);
  });

  it("an id that is none answers 404 and asks nobody", async () => {
    expect((await open.send("GET", "/v1/jobs/nope")).status).toBe(404);
    expect((await open.send("GET", "/v1/artifacts/%00")).status).toBe(404);
    expect(open.services.calls).toEqual([]);
  });

  it.each([
    ["PUT", "/v1/jobs", "POST, GET, HEAD"],
    ["GET", "/v1/jobs/batch", "POST"],
    ["PATCH", `/v1/jobs/${ID}`, "GET, HEAD, DELETE"],
    ["GET", `/v1/jobs/${ID}/cancel`, "POST"],
    ["POST", "/healthz", "GET, HEAD"],
    ["POST", "/openapi.json", "GET, HEAD"],
    ["DELETE", "/trpc/getJob", "GET, HEAD, POST"],
  ])("%s %s: 405 with Allow", async (method, path, allow) => {
    const answer = await open.send(method, path);
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe(allow);
    expect(errorOf(answer).code).toBe("METHOD_NOT_ALLOWED");
  });
});

describe("a body", () => {
  it("over 256 KiB is refused by its declared length: 413", async () => {
    const answer = await open.send("POST", "/v1/jobs", { body: JSON.stringify("x".repeat(262_143)) });
    expect(answer.status).toBe(413);
    expect(errorOf(answer).code).toBe("PAYLOAD_TOO_LARGE");
  });

  it("of exactly 256 KiB is read", async () => {
    const answer = await open.send("POST", "/v1/jobs", { body: JSON.stringify("x".repeat(262_142)) });
    expect(answer.status).toBe(400);
  });

  it("over the limit is refused while it streams, before its end", async () => {
    const answer = await stream("/v1/jobs", 300_000);
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
    expect(answer).toContain('"code":"PAYLOAD_TOO_LARGE"');
    expect(await stream("/trpc/submitJob", 300_000)).toMatch(/^HTTP\/1.1 413 /);
  });

  it("of a batch may have 4 MiB and no more, on both faces", async () => {
    const batch = { jobs: [{ pad: "x".repeat(4_000_000) }] };
    expect((await open.send("POST", "/v1/jobs/batch", { body: batch })).status).toBe(202);
    expect((await open.send("POST", "/trpc/submitBatch", { body: batch })).status).toBe(200);
    const larger = { jobs: [{ pad: "x".repeat(4_194_304) }] };
    expect((await open.send("POST", "/v1/jobs/batch", { body: larger })).status).toBe(413);
    const typed = await open.send("POST", "/trpc/submitBatch", { body: larger });
    expect(typed.status).toBe(413);
    expect(trpcErrorOf(typed).code).toBe("PAYLOAD_TOO_LARGE");
  });

  it.each([
    ["text/plain", {}],
    ["application/x-www-form-urlencoded", {}],
    ["application/json; charset=latin1", {}],
    ["application/jsonp", {}],
    ["application/json", { "content-encoding": "gzip" }],
  ])("of type %s %j: 415 on both faces", async (type, more) => {
    const headers = { "content-type": type, ...more };
    const answer = await open.send("POST", "/v1/jobs", { body: good, headers });
    expect(answer.status).toBe(415);
    expect(errorOf(answer).code).toBe("UNSUPPORTED_MEDIA_TYPE");
    const typed = await open.send("POST", "/trpc/submitJob", { body: good, headers });
    expect(typed.status).toBe(415);
    expect(trpcErrorOf(typed).code).toBe("UNSUPPORTED_MEDIA_TYPE");
  });

  it.each([
    ["cut in half", '{"target":{"url":"htt'],
    ["with a trailing comma", '{"target":{},}'],
    ["with two values", "{} {}"],
    ["nested too deep", `{"target":${"[".repeat(5_000)}${"]".repeat(5_000)}}`],
    ["with a hidden field", '{"target":{"url":"x"},"labels":{"__proto__":"x"}}'],
  ])("%s: 400 on both faces", async (_, body) => {
    const answer = await open.send("POST", "/v1/jobs", { body });
    expect(answer.status).toBe(400);
    expect(errorOf(answer)).toMatchObject({ code: "INVALID_REQUEST", details: [{}] });
    const typed = await open.send("POST", "/trpc/submitJob", { body });
    expect(typed.status).toBe(400);
    expect(trpcErrorOf(typed).code).toBe("INVALID_REQUEST");
    expect(open.services.calls).toEqual([]);
  });

  it.each(["[]", "null", '"x"', "1"])("that is %s and no object: 400", async (body) => {
    expect((await open.send("POST", "/v1/jobs", { body })).status).toBe(400);
  });

  it("that is not UTF-8: 400", async () => {
    const response = await fetch(`${open.url}/v1/jobs`, {
      method: "POST",
      headers: { authorization: `Bearer ${open.serviceKey.secret}`, "content-type": "application/json" },
      body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
    });
    expect(response.status).toBe(400);
  });

  it("that is missing where one is needed: 400; that is there where none is: 400, but for an empty object", async () => {
    expect((await open.send("POST", "/v1/jobs")).status).toBe(400);
    open.services.on("cancelJob", () => ok(QUEUED));
    expect((await open.send("POST", `/v1/jobs/${ID}/cancel`, { body: { force: true } })).status).toBe(400);
    expect((await open.send("POST", `/v1/jobs/${ID}/cancel`, { body: {} })).status).toBe(200);
    expect((await open.send("POST", `/v1/jobs/${ID}/cancel`)).status).toBe(200);
  });
});

describe("the typed face", () => {
  it.each([
    ["GET", "/trpc/nope", undefined, 404, "NOT_FOUND"],
    ["GET", "/trpc/", undefined, 404, "NOT_FOUND"],
    ["GET", "/trpc/submitJob", undefined, 405, "METHOD_NOT_ALLOWED"],
    ["POST", "/trpc/getJob", {}, 405, "METHOD_NOT_ALLOWED"],
    ["GET", "/trpc/getJob?input=%7B", undefined, 400, "INVALID_REQUEST"],
    ["GET", "/trpc/getJob", undefined, 400, "INVALID_REQUEST"],
    ["GET", "/trpc/%E0%A4%A", undefined, 400, "INVALID_REQUEST"],
    ["GET", "/trpc/getJob,getJob?batch=1&input=%7B%7D", undefined, 400, "INVALID_REQUEST"],
    ["POST", "/trpc/cancelJob", { id: "x" }, 400, "INVALID_REQUEST"],
  ])("%s %s: %j gives %d in the envelope", async (method, path, body, status, code) => {
    const answer = await open.send(method, path, body === undefined ? {} : { body });
    expect([answer.status, trpcErrorOf(answer).code]).toEqual([status, code]);
  });

  it("refuses a stranger before it looks at the input", async () => {
    const answer = await open.send("POST", "/trpc/submitJob", { key: null, body: "{" });
    expect(answer.status).toBe(401);
    expect(trpcErrorOf(answer).code).toBe("UNAUTHENTICATED");
  });
});

describe("a service that fails", () => {
  it("with a failure: its status, details and Retry-After, on both faces", async () => {
    const retryAt = new Date(Date.now() + 7_000).toISOString();
    open.services.on("submitJob", () => ({ ok: false, failure: localFailure("QUEUE_FULL", { retryAt }) }));
    const answer = await open.send("POST", "/v1/jobs", { body: good });
    expect(answer.status).toBe(429);
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThanOrEqual(6);
    expect(Number(answer.headers.get("retry-after"))).toBeLessThanOrEqual(7);
    expect(errorOf(answer)).toMatchObject({ code: "QUEUE_FULL", retryAt });
    const typed = await open.send("POST", "/trpc/submitJob", { body: good });
    expect(typed.status).toBe(429);
    expect(typed.headers.get("retry-after")).not.toBeNull();
    const details = [{ path: "target.headers.cookie", message: "No." }];
    open.services.on("submitJob", () => ({ ok: false, failure: { ...localFailure("INVALID_REQUEST"), details } }));
    expect(errorOf(await open.send("POST", "/v1/jobs", { body: good })).details).toEqual(details);
  });

  it("with a fault: 503, and nothing of it is told", async () => {
    open.services.on("submitJob", () => {
      throw new Error("select secret from postgres at 10.0.0.1");
    });
    for (const path of ["/v1/jobs", "/trpc/submitJob"]) {
      const answer = await open.send("POST", path, { body: good });
      expect(answer.status).toBe(503);
      expect(answer.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
      expect(JSON.stringify(answer.body)).not.toMatch(/secret|postgres|10\.0\.0\.1|127\.0\.0\.1/);
    }
  });

  it("by an answer that is not the contract's: nothing of it is told", async () => {
    open.services.on("submitJob", () => ok({ job: { ...QUEUED, leaseToken: "secret" }, replay: false }));
    const answer = await open.send("POST", "/v1/jobs", { body: good });
    expect(answer.status).toBeGreaterThanOrEqual(500);
    expect(JSON.stringify(answer.body)).not.toContain("secret");
  });

  it("by being away: 503 DEPENDENCY_UNAVAILABLE with Retry-After, and readiness tells its name", async () => {
    await using alone = await openGateway();
    expect((await alone.send("GET", "/readyz", { key: null })).status).toBe(200);
    await alone.services.stop();
    const answer = await alone.send("POST", "/v1/jobs", { body: good });
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
    expect(errorOf(answer)).toMatchObject({ code: "DEPENDENCY_UNAVAILABLE", disposition: "RETRY" });
    expect(alone.log()).toContain("dependency.unavailable");
    await expect
      .poll(async () => (await alone.send("GET", "/readyz", { key: null })).body, { timeout: 5_000 })
      .toMatchObject({
        status: "down",
        checks: [
          { name: "database", status: "ok" },
          { name: "intake", status: "down" },
          { name: "artifacts", status: "degraded" },
          { name: "callbacks", status: "degraded" },
          { name: "fetching", status: "degraded" },
          { name: "retention", status: "degraded" },
        ],
      });
  });
});

describe("what is no HTTP", () => {
  it.each([
    ["a line of nonsense", "HELLO\r\n\r\n", "400"],
    ["no host", "GET /healthz HTTP/1.1\r\n\r\n", "400"],
    ["a host that is none", "GET /healthz HTTP/1.1\r\nHost: a b/c\r\nConnection: close\r\n\r\n", "400"],
    ["a head over 16 KiB", `GET / HTTP/1.1\r\nHost: a\r\nX-A: ${"x".repeat(20_000)}\r\n\r\n`, "431"],
    ["two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400"],
  ])("%s is answered with the envelope and a request id", async (_, bytes, status) => {
    const answer = await raw(bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toMatch(/x-request-id: [0-9a-f-]{36}/i);
    const body = JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4)) as unknown;
    expect(ErrorEnvelope.parse(body).error.code).toBe("INVALID_REQUEST");
  });

  it("health needs no key and tells no host", async () => {
    for (const path of ["/healthz", "/readyz"]) {
      const answer = await open.send("GET", path, { key: null });
      expect(answer.status).toBe(200);
      expect(JSON.stringify(answer.body)).not.toMatch(/127\.0\.0\.1|localhost|:\d{4}/);
    }
  });
});

describe("the log", () => {
  it("has a line for each request, and no key, URL or body in it", async () => {
    await open.send("POST", "/v1/jobs", {
      body: { target: { url: "https://hidden.example/" } },
      headers: { "x-request-id": "log-1" },
    });
    const line = open
      .log()
      .split("\n")
      .find((one) => one.includes('"log-1"'));
    expect(JSON.parse(line ?? "")).toMatchObject({
      requestId: "log-1",
      operation: "submitJob",
      method: "POST",
      status: 202,
      keyId: open.serviceKey.id,
      msg: "request.answered",
    });
    expect(open.log()).not.toContain("hidden.example");
    expect(open.log()).not.toContain(open.serviceKey.secret);
  });

  it.each([
    ["submitJob", "submitJob"],
    ["constructor", "unknown"],
    ["getJob,listJobs", "unknown"],
    ["told-by-a-stranger", "unknown"],
  ])("names a call of the typed face when it is one of ours: %s", async (name, operation) => {
    const id = `typed-${name.replaceAll(/[^a-z]/giu, "")}`;
    await open.send("POST", `/trpc/${name}`, { body: good, headers: { "x-request-id": id } });
    const lines = open.log().split("\n");
    const line = lines.find((one) => one.includes(`"${id}"`) && one.includes("request.answered"));
    expect(JSON.parse(line ?? "")).toMatchObject({ operation });
    expect(open.log()).not.toContain("told-by");
  });
});

/** Sends bytes as they are and reads all that comes back. */
async function raw(bytes: string): Promise<string> {
  const { hostname, port } = new URL(open.url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    socket.on("end", () => resolve(text));
    socket.on("error", reject);
  });
}

/** Sends a body of unknown length that never ends, `bytes` of it, and reads the head of the answer. */
async function stream(path: string, bytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(open.url + path, {
      method: "POST",
      headers: {
        authorization: `Bearer ${open.serviceKey.secret}`,
        "content-type": "application/json",
        "transfer-encoding": "chunked",
      },
    });
    request.on("response", (response) => {
      let text = `HTTP/1.1 ${response.statusCode} ${response.statusMessage}\r\n`;
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("end", () => {
        request.destroy();
        resolve(text);
      });
    });
    request.on("error", reject);
    request.write(Buffer.alloc(bytes, 0x20));
  });
}
