import { createHash, randomBytes } from "node:crypto";
import { readTestAuthority, readTlsFixture, startOrigin, startUnlockerApi } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { createUnlockerTransport } from "../src/index.ts";
import { bodyOf, createUnlockerRig, PAGE, watching } from "./providers-rig.ts";
import { createStubResolver } from "./rig.ts";

describe("UNLOCKER: what is sent", () => {
  it("W6 one POST with our zone, the vetted URL, and nothing of the caller's", async () => {
    await using api = await startUnlockerApi({ answers: { [PAGE]: { page: { body: "hello" } } } });
    await using rig = createUnlockerRig(api);
    const { outcome, body } = await rig.get(`${PAGE}#top`, {
      headers: { "accept-language": "en", referer: "https://secret.example.com/", "user-agent": "caller/1" },
      egress: { country: "DE", session: "abc" },
    });
    expect(outcome.ok).toBe(true);
    expect(body.toString()).toBe("hello");
    expect(api.calls.length).toBe(1);
    expect(bodyOf(api)).toEqual({
      zone: api.zone,
      url: PAGE,
      format: "raw",
      method: "GET",
      debug: true,
      country: "de",
    });
    const { headers } = api.calls[0]!;
    expect(headers["authorization"]).toBe(`Bearer ${api.apiKey}`);
    expect(JSON.stringify(headers)).not.toMatch(/secret|caller/u);
  });

  it("W2 one admitted hop per attempt, with the target's URL", async () => {
    await using api = await startUnlockerApi({ answers: { [PAGE]: { page: { body: "hello" } } } });
    await using rig = createUnlockerRig(api);
    const { admit, hops, done } = watching();
    await rig.get(PAGE, {}, { admit });
    expect(hops.map(({ url, purpose, isFirst }) => [url.href, purpose, isFirst])).toEqual([[PAGE, "PAGE", true]]);
    expect(done()).toBe(1);
  });

  it("J3 a hop that has to wait sends nothing and gives the attempt back", async () => {
    await using api = await startUnlockerApi();
    await using rig = createUnlockerRig(api);
    const wait = { horizonMs: 9_000, dueMs: 9_500 };
    const { outcome } = await rig.get(PAGE, {}, { admit: () => Promise.resolve({ kind: "WAIT", wait }) });
    expect(outcome).toMatchObject({ ok: false, aborted: true, wait, sent: false, usage: { requests: 0 } });
    expect(api.calls.length).toBe(0);
  });

  it("HEAD is not offered: refused before anything is sent", async () => {
    await using api = await startUnlockerApi();
    await using rig = createUnlockerRig(api);
    const { outcome } = await rig.get(PAGE, { method: "HEAD" });
    expect(outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "PROVIDER_POLICY", action: "CHANGE_REQUEST", nativeCode: "METHOD_NOT_OFFERED" },
    });
    expect(api.calls.length).toBe(0);
  });

  it.each([
    "http://api.example.com",
    "https://10.0.0.1",
    "https://user@api.example.com",
    "https://api.example.com?a=b",
  ])("W6 an API at %s is never called", (url) => {
    expect(() =>
      createUnlockerTransport({ api: { url, apiKey: "k".repeat(20), zone: "z" }, resolver: createStubResolver() }),
    ).toThrow(/provider's API/u);
  });

  it("W6 the API's certificate must carry its name", async () => {
    await using api = await startOrigin({ tls: readTlsFixture("origin") });
    const make = (host: string) =>
      createUnlockerRig(
        { url: `https://${host}`, apiKey: "k".repeat(20), zone: "z" },
        {
          overrides: {
            authorities: [readTestAuthority()],
            dial: () => ({ host: "127.0.0.1", port: api.port }),
          },
        },
      );
    await using right = make("origin.example.com");
    await using wrong = make("other.example.net");
    await right.get();
    expect(api.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(["POST /request"]);
    const { outcome } = await wrong.get();
    expect(outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "PROVIDER_FAILURE", origin: "PAID_EGRESS", disposition: "RETRY_NEXT_ROUTE" },
    });
    expect(api.requests.length).toBe(1);
  });
});

describe("UNLOCKER: where the API is", () => {
  const there = { url: "https://api.example.com", apiKey: "k".repeat(20), zone: "z" };

  it("W6 one whose name leads inside is not dialled", async () => {
    const dialled: string[] = [];
    await using rig = createUnlockerRig(there, {
      resolver: createStubResolver({ "api.example.com": ["93.184.216.34", "10.0.0.7"] }),
      overrides: {
        dial(address, port) {
          dialled.push(address);
          return { host: "127.0.0.1", port };
        },
      },
    });
    expect((await rig.get()).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "PROVIDER_FAILURE", origin: "PAID_EGRESS", nativeCode: "ADDRESS_REFUSED" },
    });
    expect(dialled).toEqual([]);
  });

  it("W4 one whose name is unknown is the provider's failure, and leaves the route", async () => {
    const resolve = () => Promise.resolve({ ok: false, kind: "dns_not_found", nativeCode: "ENOTFOUND" } as const);
    await using rig = createUnlockerRig(there, { resolver: { resolve } });
    expect((await rig.get()).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "PROVIDER_FAILURE", disposition: "RETRY_NEXT_ROUTE", nativeCode: "ENOTFOUND" },
      usage: { requests: 0 },
    });
  });
});

describe("UNLOCKER: the target's answer", () => {
  it("W9 a large body passes through: its size is never in memory", async () => {
    const block = Buffer.alloc(1024 * 1024, "a");
    await using api = await startOrigin({
      paths: {
        "/request": async (reply) => {
          await reply.write("HTTP/1.1 200 OK\r\nx-brd-status-code: 200\r\nContent-Length: 134217728\r\n\r\n");
          for (let sent = 0; sent < 128 && !reply.isClosed(); sent += 1) await reply.write(block);
        },
      },
    });
    await using rig = createUnlockerRig({ url: `http://127.0.0.1:${api.port}`, apiKey: "k".repeat(20), zone: "z" });
    let taken = 0;
    let highest = 0;
    const before = process.memoryUsage().rss;
    const sink = {
      write(chunk: Buffer) {
        taken += chunk.length;
        highest = Math.max(highest, process.memoryUsage().rss);
      },
    };
    const outcome = await rig.fetchInto(PAGE, sink, new AbortController().signal, { maxBodyBytes: 300_000_000 });
    expect(outcome).toMatchObject({ ok: true, response: { bodyBytes: 134_217_728 } });
    expect(taken).toBe(134_217_728);
    expect(highest - before).toBeLessThan(80 * 1024 * 1024);
  });

  it("binary bytes arrive untouched, with the target's type and what the request cost", async () => {
    const bytes = randomBytes(300_000);
    await using api = await startUnlockerApi({
      answers: { [PAGE]: { page: { body: bytes, headers: { "content-type": "image/jpeg", "x-powered-by": "x" } } } },
    });
    await using rig = createUnlockerRig(api);
    const { outcome, body } = await rig.get();
    expect(createHash("sha256").update(body).digest("hex")).toBe(createHash("sha256").update(bytes).digest("hex"));
    expect(outcome).toMatchObject({
      ok: true,
      sent: true,
      hostKey: "shop.example.com",
      usage: { requests: 1, isBilled: true, providerRequestId: "req-1", socketBytes: 0, browserMs: 0 },
      response: { httpStatus: 200, finalUrl: PAGE, bodyBytes: 300_000, contentType: { declared: "image/jpeg" } },
    });
    if (!outcome.ok) return;
    expect(outcome.response.headers["x-powered-by"]).toBe("x");
    expect(Object.keys(outcome.response.headers).filter((name) => name.startsWith("x-brd"))).toEqual([]);
    expect(outcome.timings.ttfbMs).not.toBeNull();
  });

  it.each([
    [404, {}, "NOT_FOUND", "TERMINAL"],
    [403, {}, "HTTP_CLIENT_ERROR", "TERMINAL"],
    [500, {}, "HTTP_SERVER_ERROR", "RETRY"],
    [429, {}, "RATE_LIMITED", "RETRY"],
    [429, { "retry-after": "7" }, "RATE_LIMITED", "RETRY_AT"],
    [503, { "retry-after": "7" }, "HTTP_SERVER_ERROR", "RETRY_AT"],
    [301, { location: "https://shop.example.com/p/2" }, "UNACCEPTABLE_STATUS", "TERMINAL"],
    [302, { location: "http://169.254.169.254/" }, "REDIRECT_FORBIDDEN", "TERMINAL"],
  ] as const)("F2 its %i %o is %s, %s, and the target's own", async (status, headers, code, disposition) => {
    await using api = await startUnlockerApi({
      answers: { [PAGE]: { page: { status, headers, body: "<p>sorry</p>", isBilled: false } } },
    });
    await using rig = createUnlockerRig(api);
    const { outcome, writes } = await rig.get(PAGE, { accept: "SUCCESS_ONLY" });
    expect(outcome).toMatchObject({
      ok: false,
      httpStatus: status,
      failure: { kind: "UPSTREAM", origin: "TARGET", code, disposition, httpStatus: status },
      usage: { requests: 0, isBilled: false, providerRequestId: "req-1" },
    });
    expect(writes).toBe(0);
    if (outcome.ok || outcome.failure === null || code === "REDIRECT_FORBIDDEN") return;
    expect(outcome.refusedBody?.bytes.toString()).toBe("<p>sorry</p>");
  });

  it("ANY_RESPONSE keeps a 404 as its answer", async () => {
    await using api = await startUnlockerApi({ answers: { [PAGE]: { page: { status: 404, body: "gone" } } } });
    await using rig = createUnlockerRig(api);
    const { outcome, body } = await rig.get();
    expect(outcome).toMatchObject({ ok: true, response: { httpStatus: 404 } });
    expect(body.toString()).toBe("gone");
  });

  it("a wall's page is BLOCKED with its page as evidence, and nothing of it is stored", async () => {
    const wall =
      "<html><head><title>Just a moment...</title></head><body>_cf_chl_opt /cdn-cgi/challenge-platform/</body></html>";
    await using api = await startUnlockerApi({ answers: { [PAGE]: { page: { status: 403, body: wall } } } });
    await using rig = createUnlockerRig(api);
    const { outcome, writes } = await rig.get();
    expect(outcome).toMatchObject({
      ok: false,
      failure: { code: "BLOCKED", origin: "TARGET", nativeCode: "CLOUDFLARE_CHALLENGE" },
      refusedBody: { httpStatus: 403, finalUrl: PAGE },
    });
    expect(writes).toBe(0);
  });

  it("W6 a final URL that may not be fetched ends the attempt before a byte is taken", async () => {
    await using api = await startUnlockerApi({
      answers: { [PAGE]: { page: { body: "secret", finalUrl: "http://169.254.169.254/latest" } } },
    });
    await using rig = createUnlockerRig(api);
    const { outcome, writes } = await rig.get();
    expect(outcome).toMatchObject({ ok: false, failure: { code: "REDIRECT_FORBIDDEN", origin: "TARGET" } });
    expect(writes).toBe(0);
  });

  it("a public final URL is the answer's", async () => {
    const finalUrl = "https://www.example.com/other";
    await using api = await startUnlockerApi({ answers: { [PAGE]: { page: { body: "moved", finalUrl } } } });
    await using rig = createUnlockerRig(api);
    expect((await rig.get()).outcome).toMatchObject({ ok: true, response: { finalUrl } });
  });

  it("an unwanted type is refused before its body is read", async () => {
    await using api = await startUnlockerApi({
      answers: { [PAGE]: { page: { body: "%PDF", headers: { "content-type": "application/pdf" } } } },
    });
    await using rig = createUnlockerRig(api);
    const { outcome, writes } = await rig.get(PAGE, { contentTypes: ["text/html"] });
    expect(outcome).toMatchObject({ ok: false, failure: { code: "UNWANTED_CONTENT_TYPE" } });
    expect(writes).toBe(0);
  });

  it("W9 a body over maxBodyBytes is BODY_TOO_LARGE, declared or not", async () => {
    await using api = await startUnlockerApi({
      answers: {
        [PAGE]: { page: { body: Buffer.alloc(2_000, "a") } },
        "https://shop.example.com/chunked": {
          page: { body: Buffer.alloc(2_000, "a"), headers: { "transfer-encoding": "chunked" } },
        },
      },
    });
    await using rig = createUnlockerRig(api);
    for (const url of [PAGE, "https://shop.example.com/chunked"]) {
      const { outcome } = await rig.get(url, { maxBodyBytes: 1_000 });
      expect(outcome).toMatchObject({ ok: false, failure: { code: "BODY_TOO_LARGE", origin: "TARGET" } });
    }
  });

  it("a 204 has no body, and an empty page that is billed is an empty page", async () => {
    await using api = await startUnlockerApi({
      answers: { [PAGE]: { page: { status: 204 } }, "https://shop.example.com/empty": { page: {} } },
    });
    await using rig = createUnlockerRig(api);
    expect((await rig.get()).outcome).toMatchObject({ ok: true, response: { httpStatus: 204, hasBody: false } });
    expect((await rig.get("https://shop.example.com/empty")).outcome).toMatchObject({
      ok: true,
      response: { httpStatus: 200, hasBody: true, bodyBytes: 0 },
    });
  });
});
