import { startUnlockerApi } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { quarantineOf } from "../src/index.ts";
import { createUnlockerRig, never, PAGE } from "./providers-rig.ts";

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
