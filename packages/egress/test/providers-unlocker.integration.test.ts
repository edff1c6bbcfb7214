import { createHash, randomBytes } from "node:crypto";
import { readTlsFixture, readTestAuthority, startOrigin, startUnlockerApi } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { type AdmitHop, createUnlockerTransport, type Hop, quarantineOf } from "../src/index.ts";
import { bodyOf, createUnlockerRig, PAGE } from "./providers-rig.ts";
import { createStubResolver } from "./rig.ts";

const ROBOTS = "https://shop.example.com/robots.txt";
const RESPECT = { robots: "RESPECT" } as const;

/** Everything is let go, and written down. */
function watching(): { readonly admit: AdmitHop; readonly hops: Hop[]; readonly done: () => number } {
  const hops: Hop[] = [];
  let done = 0;
  return {
    hops,
    done: () => done,
    admit: (hop) => {
      hops.push(hop);
      return Promise.resolve({
        kind: "GO",
        done() {
          done += 1;
        },
      });
    },
  };
}

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

describe("UNLOCKER: whose fault, and what next", () => {
  it.each([
    ["a wrong key", { key: "some-other-key-0123456789" }, "PROVIDER_AUTH", "RETRY_NEXT_ROUTE", "FIX_CREDENTIALS"],
    ["an unknown zone", { zone: "other_zone" }, "PROVIDER_AUTH", "RETRY_NEXT_ROUTE", "FIX_CREDENTIALS"],
  ] as const)("W4 %s is the operator's to mend", async (_what, options, code, disposition, action) => {
    await using api = await startUnlockerApi();
    await using rig = createUnlockerRig(api, options);
    const { outcome } = await rig.get();
    expect(outcome).toMatchObject({
      ok: false,
      httpStatus: null,
      failure: { code, origin: "PAID_EGRESS", disposition, action },
      usage: { requests: 0 },
    });
    expect(quarantineOf(outcome.ok || outcome.aborted ? never() : outcome.failure)?.reason).toBe(code);
  });

  it("W4 a suspended account is PROVIDER_PAYMENT and a spent zone PROVIDER_QUOTA, each quarantines the route", async () => {
    await using api = await startUnlockerApi({ answers: { [PAGE]: { page: { body: "a" } } }, zoneLimit: 1 });
    await using rig = createUnlockerRig(api);
    expect((await rig.get()).outcome.ok).toBe(true);
    const { outcome: spent } = await rig.get();
    expect(spent).toMatchObject({
      failure: {
        code: "PROVIDER_QUOTA",
        origin: "PAID_EGRESS",
        action: "QUARANTINE_ROUTE",
        nativeCode: "client_10100",
      },
    });
    api.account.status = "suspended";
    const { outcome: unpaid } = await rig.get();
    expect(unpaid).toMatchObject({
      failure: { code: "PROVIDER_PAYMENT", origin: "PAID_EGRESS", action: "PAY_SUPPLIER", nativeCode: "client_10020" },
    });
    for (const outcome of [spent, unpaid]) {
      if (outcome.ok || outcome.aborted) never();
      else expect(quarantineOf(outcome.failure)).not.toBeNull();
    }
  });

  it("W4 a throttle is the provider's capacity, and its Retry-After is kept", async () => {
    await using api = await startUnlockerApi({ answers: { [PAGE]: { page: { body: "a" } } }, requestsPerSecond: 1 });
    await using rig = createUnlockerRig(api);
    await rig.get();
    const { outcome } = await rig.get();
    expect(outcome).toMatchObject({
      failure: { code: "PROVIDER_CAPACITY", origin: "PAID_EGRESS", disposition: "RETRY_AT", action: "WAIT" },
    });
    if (outcome.ok || outcome.aborted) return never();
    expect(Date.parse(outcome.failure.retryAt!)).toBeGreaterThan(Date.now() - 1_000);
    expect(quarantineOf(outcome.failure)).toBeNull();
  });

  it.each([
    ["x-brd-error-code", "reject_block", 502, "BLOCKED", "TARGET", "RETRY"],
    ["x-brd-error-code", "resolve_failed_akamai_interstitial", 502, "BLOCKED", "TARGET", "RETRY"],
    ["x-brd-error-code", "premium", 400, "PROVIDER_POLICY", "PAID_EGRESS", "RETRY_NEXT_ROUTE"],
    ["x-brd-err-code", "policy_20020", 403, "PROVIDER_POLICY", "PAID_EGRESS", "RETRY_NEXT_ROUTE"],
    ["x-brd-err-code", "client-10000", 407, "PROVIDER_AUTH", "PAID_EGRESS", "RETRY_NEXT_ROUTE"],
    ["x-luminati-error-code", "client_10001", 407, "PROVIDER_AUTH", "PAID_EGRESS", "RETRY_NEXT_ROUTE"],
    ["x-brd-error-code", "something_new", 502, "PROVIDER_FAILURE", "PAID_EGRESS", "RETRY"],
    ["x-brd-error-code", "something_new", 403, "PROVIDER_POLICY", "PAID_EGRESS", "RETRY_NEXT_ROUTE"],
  ] as const)("W4 %s: %s (%i) is %s of %s, %s", async (header, code, status, expected, origin, disposition) => {
    await using api = await startUnlockerApi({ answers: { [PAGE]: { refusal: { code, status, header } } } });
    await using rig = createUnlockerRig(api);
    const { outcome, writes } = await rig.get();
    expect(outcome).toMatchObject({
      ok: false,
      sent: true,
      httpStatus: null,
      failure: { code: expected, origin, disposition, nativeCode: code },
      usage: { requests: 0, isBilled: false },
    });
    expect(writes).toBe(0);
  });

  it("W4 an empty 200 is the provider's policy and not the target's page", async () => {
    await using api = await startUnlockerApi();
    await using rig = createUnlockerRig(api);
    const heads = [{}, { "x-brd-status-code": "200" }, { "x-brd-status-code": "403" }];
    for (const headers of heads.slice(1)) {
      api.always({ script: { status: 200, headers } });
      const { outcome, writes } = await rig.get();
      expect(outcome).toMatchObject({
        ok: false,
        failure: { code: "PROVIDER_POLICY", origin: "PAID_EGRESS", nativeCode: "EMPTY_ANSWER" },
        usage: { requests: 0 },
      });
      expect(writes).toBe(0);
    }
    api.always({ script: { status: 200 } });
    expect((await rig.get()).outcome).toMatchObject({
      failure: { code: "PROVIDER_POLICY", origin: "PAID_EGRESS", nativeCode: "EMPTY_ANSWER" },
    });
  });

  it.each([
    [
      "HTML where the API should be",
      { status: 200, headers: { "content-type": "text/html" }, body: "<p>hi</p>" },
      "PROVIDER_FAILURE",
      "RETRY_NEXT_ROUTE",
    ],
    [
      "a moved API",
      { status: 301, headers: { location: "https://elsewhere.example.com/" } },
      "PROVIDER_FAILURE",
      "RETRY_NEXT_ROUTE",
    ],
    ["a 500", { status: 500, body: "<p>oops</p>" }, "PROVIDER_FAILURE", "RETRY"],
    ["a 503", { status: 503 }, "PROVIDER_CAPACITY", "RETRY"],
    ["a 503 that says when", { status: 503, headers: { "retry-after": "9" } }, "PROVIDER_CAPACITY", "RETRY_AT"],
    ["a 429", { status: 429 }, "PROVIDER_CAPACITY", "RETRY"],
    ["a 429 that says when", { status: 429, headers: { "retry-after": "9" } }, "PROVIDER_CAPACITY", "RETRY_AT"],
    ["a 402 without a code", { status: 402 }, "PROVIDER_FAILURE", "RETRY_NEXT_ROUTE"],
    ["a 403", { status: 403 }, "PROVIDER_AUTH", "RETRY_NEXT_ROUTE"],
    [
      "a refused request",
      { status: 400, body: '{"error":"Request validation failed","error_code":"validation"}' },
      "PROVIDER_POLICY",
      "RETRY_NEXT_ROUTE",
    ],
    ["a reset", "RESET", "PROVIDER_FAILURE", "RETRY"],
  ] as const)("W4 %s is the provider's", async (_what, script, code, disposition) => {
    await using api = await startUnlockerApi();
    await using rig = createUnlockerRig(api);
    api.always({ script });
    const { outcome, writes } = await rig.get();
    expect(outcome).toMatchObject({
      ok: false,
      aborted: false,
      sent: true,
      httpStatus: null,
      failure: { code, origin: "PAID_EGRESS", disposition },
    });
    expect(writes).toBe(0);
  });

  it("W4 a dead API is the provider's, and nothing was sent", async () => {
    let url = "";
    {
      await using api = await startUnlockerApi();
      ({ url } = api);
    }
    await using rig = createUnlockerRig({ url, apiKey: "k".repeat(20), zone: "z" });
    const { outcome } = await rig.get();
    expect(outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "PROVIDER_FAILURE", origin: "PAID_EGRESS", disposition: "RETRY", nativeCode: "ECONNREFUSED" },
      usage: { requests: 0 },
    });
  });

  it("the key is in no outcome, however the API repeats it", async () => {
    const key = "canary-key-5f2b8c77d1";
    await using api = await startUnlockerApi({ apiKey: key });
    await using rig = createUnlockerRig(api);
    const echo = {
      "x-brd-status-code": "404",
      "x-echo": `Bearer ${key}`,
      "x-brd-debug": `req_id=${key}; billed=true`,
      location: `https://example.com/${key}`,
    };
    const scripts = [
      { status: 200, headers: echo, body: "ok" },
      { status: 200, headers: { ...echo, "x-brd-error": key, "x-brd-error-code": key } },
      { status: 400, headers: { "content-type": "application/json" }, body: JSON.stringify({ error_code: key }) },
      { status: 401, headers: { "x-brd-err-msg": key }, body: key },
      { status: 500, body: key },
    ];
    for (const script of scripts) {
      api.always({ script });
      const { outcome } = await rig.get();
      expect(JSON.stringify(outcome)).not.toContain(key);
    }
    expect(api.calls.length).toBe(scripts.length);
  });
});

describe("UNLOCKER: time", () => {
  it.each([
    ["head", "HANG", "RESPONSE_TIMEOUT"],
    [
      "body",
      { status: 200, headers: { "content-length": "100", "x-brd-status-code": "200" }, body: "half" },
      "BODY_TIMEOUT",
    ],
  ] as const)(
    "W9 the attempt's limit in the %s is the provider's timeout, and no socket is left",
    async (_phase, script, code) => {
      await using api = await startUnlockerApi();
      await using rig = createUnlockerRig(api);
      api.always({ script: typeof script === "string" ? script : "STALL" });
      const { outcome } = await rig.get(PAGE, { attemptLimitMs: 300 });
      expect(outcome).toMatchObject({
        ok: false,
        aborted: false,
        sent: true,
        failure: { code, origin: "PAID_EGRESS", disposition: "RETRY" },
        usage: { requests: 1, isBilled: null },
      });
      await api.allClosed();
      expect(rig.transport.sockets()).toBe(0);
    },
  );

  it.each(["HANG", "STALL"] as const)(
    "J5 the job's deadline ends a call that does %s, and no socket is left",
    async (script) => {
      await using api = await startUnlockerApi();
      await using rig = createUnlockerRig(api);
      api.always({ script });
      const { outcome } = await rig.get(PAGE, { deadline: performance.now() + 300 });
      expect(outcome).toMatchObject({ ok: false, failure: { kind: "LOCAL", code: "DEADLINE_EXCEEDED" } });
      await api.allClosed();
      expect(rig.transport.sockets()).toBe(0);
    },
  );

  it("J6 an abort closes the call's socket at once", async () => {
    await using api = await startUnlockerApi();
    await using rig = createUnlockerRig(api);
    api.always({ script: "HANG" });
    const controller = new AbortController();
    const fetching = rig.get(PAGE, {}, { signal: controller.signal });
    await api.call(1);
    controller.abort();
    expect((await fetching).outcome).toMatchObject({ ok: false, aborted: true, wait: null, sent: true });
    await api.allClosed();
  });

  it("W10 close ends what runs at its deadline and leaves no socket", async () => {
    await using api = await startUnlockerApi();
    await using rig = createUnlockerRig(api);
    api.always({ script: "HANG" });
    const fetching = rig.get();
    await api.call(1);
    await rig.transport.close(performance.now());
    expect((await fetching).outcome).toMatchObject({ ok: false, aborted: true });
    expect(rig.transport.sockets()).toBe(0);
  });

  it("W9 a limit longer than the usual response timeout is waited for", async () => {
    await using api = await startUnlockerApi();
    await using rig = createUnlockerRig(api, { limits: { responseTimeoutMs: 50 } });
    api.always({ script: "HANG" });
    const startedAt = performance.now();
    const { outcome } = await rig.get(PAGE, { attemptLimitMs: 500 });
    expect(outcome).toMatchObject({ failure: { code: "RESPONSE_TIMEOUT" } });
    expect(performance.now() - startedAt).toBeGreaterThan(450);
  });
});

describe("UNLOCKER: robots.txt", () => {
  it("J3 its own hop that has to wait gives the attempt back before anything is sent", async () => {
    await using api = await startUnlockerApi();
    await using rig = createUnlockerRig(api);
    const wait = { horizonMs: 9_000, dueMs: 9_500 };
    const admit: AdmitHop = () => Promise.resolve({ kind: "WAIT", wait });
    const { outcome } = await rig.get(PAGE, RESPECT, { admit });
    expect(outcome).toMatchObject({ ok: false, aborted: true, wait, sent: false, usage: { requests: 0 } });
    expect(api.calls.length).toBe(0);
  });

  it("J6 an abort while it is fetched closes its socket; the request it made may be billed", async () => {
    await using api = await startUnlockerApi({ answers: { [ROBOTS]: { script: "HANG" } } });
    await using rig = createUnlockerRig(api);
    const controller = new AbortController();
    const fetching = rig.get(PAGE, RESPECT, { signal: controller.signal });
    await api.call(1);
    controller.abort();
    expect((await fetching).outcome).toMatchObject({
      ok: false,
      aborted: true,
      sent: false,
      usage: { requests: 1, isBilled: null },
    });
    await api.allClosed();
    expect(rig.transport.sockets()).toBe(0);
  });

  it("W9 one that hangs is the provider's timeout", async () => {
    await using api = await startUnlockerApi({ answers: { [ROBOTS]: { script: "HANG" } } });
    await using rig = createUnlockerRig(api, { limits: { robotsTimeoutMs: 300 } });
    expect((await rig.get(PAGE, RESPECT)).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "RESPONSE_TIMEOUT", origin: "PAID_EGRESS" },
      usage: { requests: 1, isBilled: null },
    });
    await api.allClosed();
  });

  it("comes by the same API, once per origin, and is one more request of the attempt that began it", async () => {
    await using api = await startUnlockerApi({
      answers: {
        [ROBOTS]: { page: { body: "User-agent: *\nDisallow: /private\n" } },
        [PAGE]: { page: { body: "hello" } },
      },
    });
    await using rig = createUnlockerRig(api);
    const { admit, hops, done } = watching();
    const { outcome: first } = await rig.get(PAGE, RESPECT, { admit });
    expect(first).toMatchObject({ ok: true, usage: { requests: 2, isBilled: true, providerRequestId: "req-2" } });
    expect(hops.map(({ url, purpose }) => [url.href, purpose])).toEqual([
      [ROBOTS, "ROBOTS"],
      [PAGE, "PAGE"],
    ]);
    expect(done()).toBe(2);
    expect((await rig.get(PAGE, RESPECT)).outcome).toMatchObject({ ok: true, usage: { requests: 1 } });
    expect((await rig.get("https://shop.example.com/private", RESPECT)).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { kind: "LOCAL", code: "ROBOTS_DISALLOWED" },
      usage: { requests: 0 },
    });
    expect(api.requests.map(({ url }) => url)).toEqual([ROBOTS, PAGE, PAGE]);
  });

  it.each([
    ["that is absent forbids nothing", { page: { status: 404 } }, true],
    ["that is empty forbids nothing", { page: { isBilled: null } }, true],
    [
      "that the provider refuses ends the attempt with that failure",
      { refusal: { code: "policy_20050", status: 403 } },
      false,
    ],
  ] as const)("%s", async (_what, answer, isOk) => {
    await using api = await startUnlockerApi({ answers: { [ROBOTS]: answer, [PAGE]: { page: { body: "hello" } } } });
    await using rig = createUnlockerRig(api);
    const { outcome } = await rig.get(PAGE, RESPECT);
    expect(outcome.ok).toBe(isOk);
    if (!isOk) expect(outcome).toMatchObject({ sent: false, failure: { code: "PROVIDER_POLICY" } });
  });

  it("one fetch of it serves all who ask at the same time, and one of them pays", async () => {
    await using api = await startUnlockerApi({
      answers: { [ROBOTS]: { page: { body: "User-agent: *\n" } }, [PAGE]: { page: { body: "hello" } } },
    });
    await using rig = createUnlockerRig(api);
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => rig.get(PAGE, RESPECT)));
    const paid = outcomes.map(({ outcome }) => outcome.usage.requests);
    expect(paid.toSorted((a, b) => a - b)).toEqual([...Array.from({ length: 9 }, () => 1), 2]);
    expect(api.requests.filter(({ url }) => url === ROBOTS).length).toBe(1);
  });
});

function never(): never {
  throw new Error("this outcome was not to be");
}
