import { startCloudflareApi } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { quarantineOf } from "../src/index.ts";
import { createCloudflareRig, never, PAGE } from "./providers-rig.ts";

const DOM = '<html><head><title>Shop</title></head><body>caf\u00e9 \u{1f600} "quoted"\n\t\\ </body></html>';

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
