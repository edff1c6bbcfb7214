import { page, redirect, startOrigin } from "@keble-scraper/testkit";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createRig } from "./rig.ts";

const CALLER = {
  "accept-language": "en",
  referer: "http://secret.example.com/",
  "if-none-match": '"1"',
  "user-agent": "caller/1",
  accept: "text/plain",
};

describe("what a request carries", () => {
  it("sends the caller's headers, and ours beside them", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    await using rig = createRig(origin);
    await rig.get("http://origin.example.com:8080/a?b=c#d", { headers: CALLER });
    expect(origin.requests[0]).toMatchObject({
      method: "GET",
      target: "/a?b=c",
      headers: { ...CALLER, host: "origin.example.com:8080", "accept-encoding": "gzip, br", connection: "keep-alive" },
    });
  });

  it("W6 leaves out every header that is not on the list", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    await using rig = createRig(origin);
    const hostile = { host: "other.example.com", cookie: "a=b", "transfer-encoding": "chunked", "content-length": "5" };
    await rig.get("http://origin.example.com/a", {
      headers: { ...hostile, "x-api-key": "k", "metadata-flavor": "Google" },
    });
    expect(Object.keys(origin.requests[0]?.headers ?? {}).toSorted()).toEqual([
      "accept",
      "accept-encoding",
      "connection",
      "host",
      "user-agent",
    ]);
    expect(origin.requests[0]?.headers["host"]).toBe("origin.example.com");
  });

  it.each([
    ["another host", "http://other.example.com/b"],
    ["another port", "http://origin.example.com:8080/b"],
  ])("W6 the caller's headers do not follow a redirect to %s, nor come back", async (_what, elsewhere) => {
    await using origin = await startOrigin({
      paths: {
        "/a": redirect("/same"),
        "/same": redirect(elsewhere),
        "/b": redirect("http://origin.example.com/c"),
        "/c": page("c"),
      },
    });
    await using rig = createRig(origin);
    await rig.get("http://origin.example.com/a", { headers: CALLER });
    const carried = origin.requests.map(({ path, headers }) => [path, headers["if-none-match"] ?? null]);
    expect(carried).toEqual([
      ["/a", '"1"'],
      ["/same", '"1"'],
      ["/b", null],
      ["/c", null],
    ]);
    expect(origin.requests[2]?.raw).not.toMatch(/secret|caller\/1|accept-language/);
  });

  it("keeps no cookie: Set-Cookie is data", async () => {
    await using origin = await startOrigin({
      paths: {
        "/a": (reply) => reply.send({ status: 302, headers: { Location: "/b", "Set-Cookie": "a=1" } }),
        "/b": (reply) =>
          reply.send({ headers: { "Set-Cookie": ["b=2", "c=3; Path=/"], "X-Two": ["x", "y"] }, body: "b" }),
      },
    });
    await using rig = createRig(origin);
    const { outcome } = await rig.get("http://origin.example.com/a");
    expect(origin.requests[1]?.headers["cookie"]).toBeUndefined();
    expect(outcome).toMatchObject({ response: { headers: { "set-cookie": ["b=2", "c=3; Path=/"], "x-two": "x, y" } } });
  });

  it("a 304 is an answer only where the condition was sent", async () => {
    const notModified = { "/b": (reply: Parameters<ReturnType<typeof page>>[0]) => reply.send({ status: 304 }) };
    await using origin = await startOrigin({ paths: { ...notModified, "/a": redirect("http://other.example.com/b") } });
    await using rig = createRig(origin);
    const overrides = { accept: "SUCCESS_ONLY", headers: { "if-none-match": '"1"' } } as const;
    expect((await rig.get("http://origin.example.com/b", overrides)).outcome).toMatchObject({
      ok: true,
      response: { httpStatus: 304, hasBody: false, bodyBytes: 0 },
    });
    // The redirect crossed an origin: the condition was dropped, so nothing of the caller's can be unmodified.
    expect((await rig.get("http://origin.example.com/a", overrides)).outcome).toMatchObject({
      ok: false,
      failure: { code: "UNACCEPTABLE_STATUS" },
    });
  });

  it.each([
    [404, "NOT_FOUND"],
    [410, "NOT_FOUND"],
    [402, "HTTP_CLIENT_ERROR"],
    [300, "UNACCEPTABLE_STATUS"],
  ])("SUCCESS_ONLY: a %d is %s and none of its body goes to the sink", async (status, code) => {
    await using origin = await startOrigin({
      paths: {
        "/a": (reply) => reply.write(`HTTP/1.1 ${status} No\r\nContent-Length: 5\r\n\r\nsorry`),
      },
    });
    await using rig = createRig(origin);
    const { outcome, writes } = await rig.get("http://origin.example.com/a", { accept: "SUCCESS_ONLY" });
    expect(outcome).toMatchObject({
      ok: false,
      httpStatus: status,
      failure: { code, httpStatus: status },
      bodyBytes: 0,
    });
    expect(writes).toBe(0);
    await origin.allClosed();
  });

  it("an unwanted content type is refused before the body is read", async () => {
    await using origin = await startOrigin({
      paths: { "/a": page("<p>", "text/html"), "/b": page("{}", "application/json") },
    });
    await using rig = createRig(origin);
    const wanted = { contentTypes: ["application/json"] };
    const { outcome, writes } = await rig.get("http://origin.example.com/a", wanted);
    expect(outcome).toMatchObject({ ok: false, failure: { code: "UNWANTED_CONTENT_TYPE", disposition: "TERMINAL" } });
    expect(writes).toBe(0);
    expect((await rig.get("http://origin.example.com/b", wanted)).outcome.ok).toBe(true);
  });

  it("tells type and charset from the bytes", async () => {
    await using origin = await startOrigin({ paths: { "/a": page(Buffer.from("<!doctype html><p>é"), "text/plain") } });
    await using rig = createRig(origin);
    expect((await rig.get("http://origin.example.com/a")).outcome).toMatchObject({
      response: {
        contentType: { declared: "text/plain", sniffed: "text/html" },
        charset: { declared: null, detected: "utf-8" },
      },
    });
  });

  it.each([
    ["Content-Length: 5", "LENGTH"],
    ["Transfer-Encoding: chunked", "CHUNKED"],
    ["Connection: close", "CLOSE"],
  ] as const)("says how the body was framed: %s", async (header, framing) => {
    const body = framing === "CHUNKED" ? "5\r\nhello\r\n0\r\n\r\n" : "hello";
    await using origin = await startOrigin({
      paths: { "/a": (reply) => reply.end(`HTTP/1.1 200 OK\r\n${header}\r\n\r\n${body}`) },
    });
    await using rig = createRig(origin);
    expect((await rig.get("http://origin.example.com/a")).outcome).toMatchObject({
      response: { framing, bodyBytes: 5 },
    });
  });
});

describe("an answer that does not wait for its request", () => {
  it("early-response: one that comes before the request was read is an answer all the same", async () => {
    await using origin = await startOrigin({
      onConnection(socket) {
        // At once when the connection is accepted: the request is still on its way.
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        return "TAKEN";
      },
    });
    await using rig = createRig(origin);
    const { outcome, body } = await rig.get("http://origin.example.com/a");
    expect(outcome).toMatchObject({ ok: true, response: { httpStatus: 200, bodyBytes: 5 } });
    expect(body.toString()).toBe("hello");
  });
});

describe("with a proxy in the environment", () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  it("W6 HTTP_PROXY and NODE_USE_ENV_PROXY change nothing", async () => {
    await using proxy = await startOrigin();
    for (const name of ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"]) {
      vi.stubEnv(name, `http://127.0.0.1:${proxy.port}`);
    }
    vi.stubEnv("NODE_USE_ENV_PROXY", "1");
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    await using rig = createRig(origin);
    expect((await rig.get("http://origin.example.com/a")).outcome.ok).toBe(true);
    expect(proxy.connections()).toBe(0);
  });
});
