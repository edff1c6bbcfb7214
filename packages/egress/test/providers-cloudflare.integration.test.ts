import { createHash, randomBytes } from "node:crypto";
import { startCloudflareApi } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { createCloudflareRenderTransport } from "../src/index.ts";
import { bodyOf, createCloudflareRig, PAGE, watching } from "./providers-rig.ts";
import { createStubResolver } from "./rig.ts";

const DOM = '<html><head><title>Shop</title></head><body>caf\u00e9 \u{1f600} "quoted"\n\t\\ </body></html>';

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
