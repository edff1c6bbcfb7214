import { createHash, randomBytes } from "node:crypto";
import { startCloudflareApi } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { type AdmitHop, createCloudflareRenderTransport, type Hop, quarantineOf } from "../src/index.ts";
import { bodyOf, createCloudflareRig, PAGE } from "./providers-rig.ts";
import { createStubResolver } from "./rig.ts";

const DOM = '<html><head><title>Shop</title></head><body>caf\u00e9 \u{1f600} "quoted"\n\t\\ </body></html>';

function watching(): { readonly admit: AdmitHop; readonly hops: Hop[] } {
  const hops: Hop[] = [];
  return {
    hops,
    admit: (hop) => {
      hops.push(hop);
      return Promise.resolve({ kind: "GO", done() {} });
    },
  };
}

describe("CLOUDFLARE_RENDER: what is sent", () => {
  it("W6 one POST for the DOM, with the vetted URL, no cache, and those headers that have a place", async () => {
    await using api = await startCloudflareApi({ answers: { [PAGE]: { page: { html: DOM } } } });
    await using rig = createCloudflareRig(api);
    const { outcome } = await rig.get(`${PAGE}#top`, {
      headers: {
        "accept-language": "de",
        referer: "https://www.example.com/",
        "user-agent": "caller/1",
        accept: "text/plain",
        "if-none-match": '"1"',
        cookie: "a=b",
      },
    });
    expect(outcome.ok).toBe(true);
    expect(api.calls.map(({ method, path }) => `${method} ${path}`)).toEqual([
      `POST /accounts/${api.accountId}/browser-rendering/content?cacheTTL=0`,
    ]);
    expect(bodyOf(api)).toEqual({
      url: PAGE,
      userAgent: "caller/1",
      gotoOptions: { waitUntil: "load", timeout: expect.any(Number) as number, referer: "https://www.example.com/" },
      setExtraHTTPHeaders: { "accept-language": "de" },
    });
    expect(api.calls[0]!.headers["authorization"]).toBe(`Bearer ${api.apiToken}`);
  });

  it.each([
    [180_000, 60_000],
    [20_000, 15_000],
    [4_000, 2_000],
  ])("W9 an attempt of %i ms gives the navigation at most %i ms", async (attemptLimitMs, most) => {
    await using api = await startCloudflareApi({ answers: { [PAGE]: { page: { html: DOM } } } });
    await using rig = createCloudflareRig(api);
    await rig.get(PAGE, { attemptLimitMs, deadline: performance.now() + 600_000 });
    const { timeout } = bodyOf(api)["gotoOptions"] as { timeout: number };
    expect(timeout).toBeLessThanOrEqual(most);
    expect(timeout).toBeGreaterThan(most - 2_000);
  });

  it("W2 one admitted hop per attempt, with the target's URL", async () => {
    await using api = await startCloudflareApi({ answers: { [PAGE]: { page: { html: DOM } } } });
    await using rig = createCloudflareRig(api);
    const { admit, hops } = watching();
    await rig.get(PAGE, {}, { admit });
    expect(hops.map(({ url, purpose, isFirst }) => [url.href, purpose, isFirst])).toEqual([[PAGE, "PAGE", true]]);
  });

  it.each([
    ["MHTML", { capture: "MHTML" }, "PROVIDER_POLICY"],
    ["HEAD", { method: "HEAD" }, "NOT_SUPPORTED"],
    ["a type that no DOM has", { contentTypes: ["application/pdf"] }, "UNWANTED_CONTENT_TYPE"],
  ] as const)("%s is refused before browser time is paid for", async (_what, overrides, code) => {
    await using api = await startCloudflareApi();
    await using rig = createCloudflareRig(api);
    const { outcome } = await rig.get(PAGE, overrides);
    expect(outcome).toMatchObject({ ok: false, sent: false, failure: { code }, usage: { browserMs: 0 } });
    expect(api.calls.length).toBe(0);
  });

  it.each(["http://api.example.com/client/v4", "https://192.168.1.1"])("W6 an API at %s is never called", (url) => {
    const api = { url, accountId: "0".repeat(32), apiToken: "t".repeat(20) };
    expect(() => createCloudflareRenderTransport({ api, resolver: createStubResolver() })).toThrow(/provider's API/u);
  });
});

describe("CLOUDFLARE_RENDER: what comes back", () => {
  it("the DOM, with the page's status, the browser's time and the request's id", async () => {
    await using api = await startCloudflareApi({ answers: { [PAGE]: { page: { html: DOM, browserMs: 1_234 } } } });
    await using rig = createCloudflareRig(api);
    const { outcome, body } = await rig.get();
    expect(body.toString("utf8")).toBe(DOM);
    expect(outcome).toMatchObject({
      ok: true,
      sent: true,
      hostKey: "shop.example.com",
      usage: {
        requests: 0,
        browserMs: 1_234,
        isBilled: null,
        providerRequestId: "0000000000000001-AMS",
        socketBytes: 0,
      },
      response: {
        httpStatus: 200,
        finalUrl: PAGE,
        bodyBytes: Buffer.byteLength(DOM),
        contentType: { declared: "text/html; charset=utf-8", sniffed: "text/html" },
        hasBody: true,
      },
    });
  });

  it.each([
    ["SCREENSHOT", "screenshot", "image/png", randomBytes(200_000)],
    ["PDF", "pdf", "application/pdf", Buffer.concat([Buffer.from("%PDF-1.4\n"), randomBytes(50_000)])],
  ] as const)("a %s is the endpoint's bytes, untouched", async (capture, endpoint, type, bytes) => {
    await using api = await startCloudflareApi({ answers: { [PAGE]: { page: { bytes } } } });
    await using rig = createCloudflareRig(api);
    const { outcome, body } = await rig.get(PAGE, { capture });
    expect(api.renders[0]).toMatchObject({ endpoint, url: PAGE, cacheTTL: "0" });
    expect(createHash("sha256").update(body).digest("hex")).toBe(createHash("sha256").update(bytes).digest("hex"));
    expect(outcome).toMatchObject({
      ok: true,
      response: { httpStatus: 200, contentType: { declared: type }, bodyBytes: bytes.length },
      usage: { browserMs: 250 },
    });
  });

  it("an answer without meta counts as a 200", async () => {
    await using api = await startCloudflareApi({ answers: { [PAGE]: { page: { html: DOM, status: null } } } });
    await using rig = createCloudflareRig(api);
    expect((await rig.get()).outcome).toMatchObject({ ok: true, response: { httpStatus: 200 } });
  });

  it.each([
    [404, "NOT_FOUND", "TERMINAL"],
    [403, "HTTP_CLIENT_ERROR", "TERMINAL"],
    [429, "RATE_LIMITED", "RETRY"],
    [503, "HTTP_SERVER_ERROR", "RETRY"],
  ] as const)("F2 a page's %i is %s, %s, and the target's own", async (status, code, disposition) => {
    await using api = await startCloudflareApi({ answers: { [PAGE]: { page: { html: "<p>sorry</p>", status } } } });
    await using rig = createCloudflareRig(api);
    const { outcome, writes } = await rig.get(PAGE, { accept: "SUCCESS_ONLY" });
    expect(outcome).toMatchObject({
      ok: false,
      httpStatus: status,
      failure: { code, origin: "TARGET", disposition, httpStatus: status },
      refusedBody: { httpStatus: status, finalUrl: PAGE, contentType: "text/html; charset=utf-8" },
      usage: { browserMs: 250 },
    });
    expect(writes).toBe(0);
  });

  it("a wall's page is BLOCKED with its page as evidence", async () => {
    const html =
      "<html><head><title>Just a moment...</title></head><body>_cf_chl_opt /cdn-cgi/challenge-platform/</body></html>";
    await using api = await startCloudflareApi({ answers: { [PAGE]: { page: { html, status: 403 } } } });
    await using rig = createCloudflareRig(api);
    const { outcome, writes } = await rig.get();
    expect(outcome).toMatchObject({
      ok: false,
      failure: { code: "BLOCKED", origin: "TARGET", nativeCode: "CLOUDFLARE_CHALLENGE" },
      refusedBody: { httpStatus: 403 },
    });
    expect(writes).toBe(0);
  });

  it("W6 a reported final URL that may not be fetched ends the attempt before a byte is taken", async () => {
    await using api = await startCloudflareApi();
    await using rig = createCloudflareRig(api);
    for (const url of ["http://169.254.169.254/latest", "file:///etc/passwd", "https://www.example.com/b"]) {
      const body = JSON.stringify({ success: true, result: "<p>x</p>", meta: { status: 200, url } });
      api.always({ script: { status: 200, headers: { "content-type": "application/json" }, body } });
      const { outcome, writes } = await rig.get();
      if (url.startsWith("https:")) expect(outcome).toMatchObject({ ok: true, response: { finalUrl: url } });
      else expect(outcome).toMatchObject({ ok: false, failure: { code: "REDIRECT_FORBIDDEN", origin: "TARGET" } });
      expect(writes).toBe(url.startsWith("https:") ? 1 : 0);
    }
  });

  it.each(["DOM", "SCREENSHOT"] as const)("W9 a %s over maxBodyBytes is BODY_TOO_LARGE", async (capture) => {
    await using api = await startCloudflareApi({
      answers: { [PAGE]: { page: { html: "a".repeat(3_000), bytes: Buffer.alloc(3_000) } } },
    });
    await using rig = createCloudflareRig(api);
    const { outcome, writes } = await rig.get(PAGE, { capture, maxBodyBytes: 1_000 });
    expect(outcome).toMatchObject({ ok: false, failure: { code: "BODY_TOO_LARGE", origin: "TARGET" } });
    expect(writes).toBe(0);
  });

  it("W9 escapes do not count: a page of exactly maxBodyBytes is taken, however JSON writes it", async () => {
    const html = '"\n\u0001'.repeat(1_000);
    await using api = await startCloudflareApi({ answers: { [PAGE]: { page: { html } } } });
    await using rig = createCloudflareRig(api);
    const { outcome, body } = await rig.get(PAGE, { maxBodyBytes: 3_000 });
    expect(outcome.ok).toBe(true);
    expect(body.toString("utf8")).toBe(html);
  });
});

describe("CLOUDFLARE_RENDER: whose fault, and what next", () => {
  it("W4 a wrong token is PROVIDER_AUTH and quarantines the route", async () => {
    await using api = await startCloudflareApi();
    await using rig = createCloudflareRig(api, { key: "some-other-token-0123456789" });
    const { outcome } = await rig.get();
    expect(outcome).toMatchObject({
      ok: false,
      httpStatus: null,
      failure: {
        code: "PROVIDER_AUTH",
        origin: "BROWSER_PROVIDER",
        disposition: "RETRY_NEXT_ROUTE",
        action: "FIX_CREDENTIALS",
        nativeCode: "10000",
      },
      usage: { browserMs: 0 },
    });
    if (outcome.ok || outcome.aborted) never();
    else expect(quarantineOf(outcome.failure)?.reason).toBe("PROVIDER_AUTH");
  });

  it("W4 the second's rate is capacity, the day's browser time a quota until the provider's own horizon", async () => {
    await using rated = await startCloudflareApi({ answers: { [PAGE]: { page: { html: DOM } } }, callsPerSecond: 1 });
    await using one = createCloudflareRig(rated);
    await one.get();
    const { outcome: busy } = await one.get();
    expect(busy).toMatchObject({
      failure: { code: "PROVIDER_CAPACITY", origin: "BROWSER_PROVIDER", disposition: "RETRY_AT", nativeCode: "2001" },
    });
    await using daily = await startCloudflareApi({
      answers: { [PAGE]: { page: { html: DOM } } },
      browserMsPerDay: 100,
    });
    await using two = createCloudflareRig(daily);
    await two.get();
    const { outcome: spent } = await two.get();
    expect(spent).toMatchObject({
      failure: {
        code: "PROVIDER_QUOTA",
        origin: "BROWSER_PROVIDER",
        disposition: "RETRY_NEXT_ROUTE",
        action: "QUARANTINE_ROUTE",
      },
    });
    if (busy.ok || busy.aborted || spent.ok || spent.aborted) return never();
    expect(quarantineOf(busy.failure)).toBeNull();
    const advice = quarantineOf(spent.failure);
    expect(advice?.reason).toBe("PROVIDER_QUOTA");
    const midnightMs = 86_400_000 - (Date.now() % 86_400_000);
    expect(Math.abs((advice?.forMs ?? 0) - midnightMs)).toBeLessThan(10_000);
  });

  it("browser time of a failed render is counted, too", async () => {
    await using api = await startCloudflareApi({
      answers: { [PAGE]: { refusal: { code: 5005, message: "net::ERR_NAME_NOT_RESOLVED", browserMs: 777 } } },
    });
    await using rig = createCloudflareRig(api);
    expect((await rig.get()).outcome).toMatchObject({
      ok: false,
      failure: { code: "DNS_FAILURE", origin: "TARGET", nativeCode: "5005" },
      usage: { browserMs: 777 },
    });
  });

  it.each(["DOM", "SCREENSHOT", "PDF"] as const)("an error envelope answers a %s, too", async (capture) => {
    await using api = await startCloudflareApi({ answers: { [PAGE]: { refusal: { code: 6_001 } } } });
    await using rig = createCloudflareRig(api);
    expect((await rig.get(PAGE, { capture })).outcome).toMatchObject({
      ok: false,
      failure: { code: "RENDER_FAILED", origin: "TARGET", disposition: "RETRY", nativeCode: "6001" },
    });
  });

  const HTML = { "content-type": "text/html" };
  const JSON_TYPE = { "content-type": "application/json" };
  it.each([
    ["HTML instead of JSON", { status: 200, headers: HTML, body: "<p>hi</p>" }, "PROVIDER_FAILURE", "RETRY_NEXT_ROUTE"],
    ["what is no JSON", { status: 200, headers: JSON_TYPE, body: "<p>hi</p>" }, "PROVIDER_FAILURE", "RETRY_NEXT_ROUTE"],
    [
      "half an envelope",
      { status: 200, headers: JSON_TYPE, body: '{"success":true,"result":"<p>' },
      "PROVIDER_FAILURE",
      "RETRY_NEXT_ROUTE",
    ],
    [
      "a success without a result",
      { status: 200, headers: JSON_TYPE, body: '{"success":true}' },
      "PROVIDER_FAILURE",
      "RETRY_NEXT_ROUTE",
    ],
    [
      "a failure without a reason",
      { status: 200, headers: JSON_TYPE, body: '{"success":false,"errors":[]}' },
      "PROVIDER_FAILURE",
      "RETRY_NEXT_ROUTE",
    ],
    [
      "two results",
      { status: 200, headers: JSON_TYPE, body: '{"success":true,"result":"a","result":"b"}' },
      "PROVIDER_FAILURE",
      "RETRY_NEXT_ROUTE",
    ],
    ["an empty 200", { status: 200, headers: JSON_TYPE }, "PROVIDER_FAILURE", "RETRY"],
    ["a 500 page", { status: 500, headers: HTML, body: "<p>oops</p>".repeat(20_000) }, "PROVIDER_FAILURE", "RETRY"],
    ["a 503", { status: 503, headers: { "retry-after": "86400" } }, "PROVIDER_CAPACITY", "RETRY_AT"],
    [
      "a moved API",
      { status: 302, headers: { location: "https://elsewhere.example.com/" } },
      "PROVIDER_FAILURE",
      "RETRY_NEXT_ROUTE",
    ],
    ["a 402", { status: 402 }, "PROVIDER_FAILURE", "RETRY_NEXT_ROUTE"],
    ["a reset", "RESET", "PROVIDER_FAILURE", "RETRY"],
  ] as const)("W4 %s is the provider's", async (_what, script, code, disposition) => {
    await using api = await startCloudflareApi();
    await using rig = createCloudflareRig(api);
    api.always({ script });
    const { outcome, writes } = await rig.get();
    expect(outcome).toMatchObject({
      ok: false,
      aborted: false,
      sent: true,
      httpStatus: null,
      failure: { code, origin: "BROWSER_PROVIDER", disposition },
    });
    expect(writes).toBe(0);
  });

  it("W4 a dead API is the provider's, and nothing was sent", async () => {
    let url = "";
    {
      await using api = await startCloudflareApi();
      ({ url } = api);
    }
    await using rig = createCloudflareRig({ url, accountId: "0".repeat(32), apiToken: "t".repeat(20) });
    expect((await rig.get()).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "PROVIDER_FAILURE", origin: "BROWSER_PROVIDER", disposition: "RETRY" },
      usage: { browserMs: 0 },
    });
  });

  it("the token is in no outcome, however the API repeats it", async () => {
    const token = "canary-token-5f2b8c77d1";
    await using api = await startCloudflareApi({ apiToken: token });
    await using rig = createCloudflareRig(api);
    const errors = [{ code: 9_999, message: token }];
    const scripts = [
      { status: 422, headers: { ...JSON_TYPE, "cf-ray": token }, body: JSON.stringify({ success: false, errors }) },
      {
        status: 200,
        headers: { ...JSON_TYPE, "x-echo": token, "cf-ray": token },
        body: '{"success":true,"result":"a"}',
      },
      { status: 500, body: token },
      {
        status: 200,
        headers: JSON_TYPE,
        body: JSON.stringify({ success: true, result: "a", meta: { url: `https://example.com/${token}` } }),
      },
    ];
    for (const script of scripts) {
      api.always({ script });
      expect(JSON.stringify((await rig.get()).outcome)).not.toContain(token);
    }
    expect(api.calls.length).toBe(scripts.length);
  });
});

describe("CLOUDFLARE_RENDER: time", () => {
  it("W9 the attempt's limit is the provider's timeout, its browser time what we waited, and no socket is left", async () => {
    await using api = await startCloudflareApi();
    await using rig = createCloudflareRig(api);
    api.always({ script: "HANG" });
    const { outcome } = await rig.get(PAGE, { attemptLimitMs: 300 });
    expect(outcome).toMatchObject({
      ok: false,
      failure: { code: "RESPONSE_TIMEOUT", origin: "BROWSER_PROVIDER", disposition: "RETRY" },
    });
    expect(outcome.usage.browserMs).toBeGreaterThan(200);
    expect(outcome.usage.browserMs).toBeLessThan(2_000);
    await api.allClosed();
    expect(rig.transport.sockets()).toBe(0);
  });

  it("W9 in the body it is a BODY_TIMEOUT", async () => {
    await using api = await startCloudflareApi();
    await using rig = createCloudflareRig(api);
    api.always({ script: "STALL" });
    const { outcome } = await rig.get(PAGE, { attemptLimitMs: 300 });
    expect(outcome).toMatchObject({ failure: { code: "BODY_TIMEOUT", origin: "BROWSER_PROVIDER" } });
    await api.allClosed();
  });

  it.each(["HANG", "STALL"] as const)(
    "J5 the job's deadline ends a call that does %s, and no socket is left",
    async (script) => {
      await using api = await startCloudflareApi();
      await using rig = createCloudflareRig(api);
      api.always({ script });
      const { outcome } = await rig.get(PAGE, { deadline: performance.now() + 300 });
      expect(outcome).toMatchObject({ ok: false, failure: { kind: "LOCAL", code: "DEADLINE_EXCEEDED" } });
      await api.allClosed();
      expect(rig.transport.sockets()).toBe(0);
    },
  );

  it("J6 an abort closes the call's socket at once, and so it does while the page is handed over", async () => {
    await using api = await startCloudflareApi({ answers: { [PAGE]: { page: { html: DOM } } } });
    await using rig = createCloudflareRig(api);
    api.always({ script: "HANG" });
    const first = new AbortController();
    const hanging = rig.get(PAGE, {}, { signal: first.signal });
    await api.call(1);
    first.abort();
    expect((await hanging).outcome).toMatchObject({ ok: false, aborted: true, sent: true });
    await api.allClosed();

    api.always(null);
    const second = new AbortController();
    const sink = {
      write() {
        second.abort();
        return new Promise<void>(() => {});
      },
    };
    const outcome = await rig.fetchInto(PAGE, sink, second.signal);
    expect(outcome).toMatchObject({ ok: false, aborted: true });
  });
});

describe("CLOUDFLARE_RENDER: robots.txt", () => {
  const ROBOTS = "https://shop.example.com/robots.txt";
  const RESPECT = { robots: "RESPECT" } as const;

  it("comes by the same API out of Chrome's own page, and its browser time is the attempt's that began it", async () => {
    await using api = await startCloudflareApi({
      answers: {
        [ROBOTS]: { page: { text: "# a < b & c > d\nUser-agent: *\nDisallow: /private\n", browserMs: 100 } },
        [PAGE]: { page: { html: DOM, browserMs: 200 } },
      },
    });
    await using rig = createCloudflareRig(api);
    const { admit, hops } = watching();
    expect((await rig.get(PAGE, { ...RESPECT, capture: "PDF" }, { admit })).outcome).toMatchObject({
      ok: true,
      usage: { browserMs: 300 },
    });
    expect(hops.map(({ url, purpose }) => [url.href, purpose])).toEqual([
      [ROBOTS, "ROBOTS"],
      [PAGE, "PAGE"],
    ]);
    expect((await rig.get("https://shop.example.com/private", RESPECT)).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { kind: "LOCAL", code: "ROBOTS_DISALLOWED" },
      usage: { browserMs: 0 },
    });
    expect(api.renders.map(({ endpoint, url }) => `${endpoint} ${url}`)).toEqual([`content ${ROBOTS}`, `pdf ${PAGE}`]);
  });

  it("that is absent forbids nothing; one that can't be had ends the attempt with its own failure", async () => {
    await using api = await startCloudflareApi({
      answers: { [ROBOTS]: { page: { html: "<p>no such page</p>", status: 404 } }, [PAGE]: { page: { html: DOM } } },
    });
    await using rig = createCloudflareRig(api);
    expect((await rig.get(PAGE, RESPECT)).outcome.ok).toBe(true);
    await using other = createCloudflareRig(api);
    api.on(ROBOTS, { refusal: { code: 5008 } });
    expect((await other.get(PAGE, RESPECT)).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "CONNECT_FAILURE", origin: "TARGET" },
    });
  });
});

function never(): never {
  throw new Error("this outcome was not to be");
}
