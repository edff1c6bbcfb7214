import { startCloudflareApi, startProviderServer, startUnlockerApi } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { probeCloudflare, type ProbeOptions, probeUnlocker, quarantineOf } from "../src/index.ts";
import { createStubResolver } from "./rig.ts";

const KEY = "canary-key-5f2b8c77d1";

function options(overrides: Partial<ProbeOptions> = {}): ProbeOptions {
  return {
    resolver: createStubResolver(),
    timeoutMs: 10_000,
    signal: new AbortController().signal,
    ...overrides,
  };
}

describe("the probe of UNLOCKER", () => {
  it("W4 is content when the account may make requests and the zone is active; it costs nothing", async () => {
    await using api = await startUnlockerApi();
    expect(await probeUnlocker(api, options())).toEqual({ ok: true });
    expect(api.calls.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "GET /status",
      "GET /zone/get_active_zones",
    ]);
    expect(api.requests.length).toBe(0);
    await api.allClosed();
  });

  it("W4 a wrong key is PROVIDER_AUTH", async () => {
    await using api = await startUnlockerApi();
    const probed = await probeUnlocker({ ...api, apiKey: "some-other-key-0123456789" }, options());
    expect(probed).toMatchObject({ ok: false, failure: { code: "PROVIDER_AUTH", action: "FIX_CREDENTIALS" } });
  });

  it("W4 can_make_requests: false is no success, and no reason to quarantine by itself", async () => {
    await using api = await startUnlockerApi();
    api.account.canMakeRequests = false;
    api.account.authFailReason = "zone_not_found";
    const probed = await probeUnlocker(api, options());
    expect(probed).toMatchObject({ ok: false, failure: { code: "PROVIDER_FAILURE", nativeCode: "zone_not_found" } });
    if (!probed.ok) expect(quarantineOf(probed.failure)).toBeNull();
  });

  it("W4 a suspended account is PROVIDER_PAYMENT, a zone that is not active PROVIDER_AUTH", async () => {
    await using api = await startUnlockerApi();
    api.account.zones = ["another_zone"];
    expect(await probeUnlocker(api, options())).toMatchObject({
      ok: false,
      failure: { code: "PROVIDER_AUTH", nativeCode: "zone_not_active" },
    });
    api.account.canMakeRequests = false;
    api.account.status = "suspended";
    expect(await probeUnlocker(api, options())).toMatchObject({
      ok: false,
      failure: { code: "PROVIDER_PAYMENT", action: "PAY_SUPPLIER" },
    });
  });
});

describe("the probe of CLOUDFLARE_RENDER", () => {
  it.each(["USER", "ACCOUNT"] as const)(
    "W4 a token of kind %s is verified for nothing while the route serves",
    async (tokenKind) => {
      await using api = await startCloudflareApi({ tokenKind });
      expect(await probeCloudflare(api, options())).toEqual({ ok: true });
      expect(api.renders.length).toBe(0);
      await api.allClosed();
    },
  );

  it("W4 a wrong token is PROVIDER_AUTH, and so is one that is disabled", async () => {
    await using api = await startCloudflareApi();
    const wrong = await probeCloudflare({ ...api, apiToken: "some-other-token-0123456789" }, options());
    expect(wrong).toMatchObject({ ok: false, failure: { code: "PROVIDER_AUTH", origin: "BROWSER_PROVIDER" } });
    api.token.status = "disabled";
    expect(await probeCloudflare(api, options())).toMatchObject({
      ok: false,
      failure: { code: "PROVIDER_AUTH", nativeCode: "token_not_active" },
    });
  });

  it("W4 a quarantined route must render: a good token does not give a spent day back", async () => {
    await using api = await startCloudflareApi({ browserMsPerDay: 0 });
    const probed = await probeCloudflare(api, options({ quarantinedFor: "PROVIDER_QUOTA" }));
    expect(probed).toMatchObject({ ok: false, failure: { code: "PROVIDER_QUOTA", action: "QUARANTINE_ROUTE" } });
    await using fresh = await startCloudflareApi();
    expect(await probeCloudflare(fresh, options({ quarantinedFor: "PROVIDER_QUOTA" }))).toEqual({ ok: true });
    expect(fresh.renders).toMatchObject([{ endpoint: "content", url: null, cacheTTL: "0" }]);
  });
});

describe("a probe", () => {
  const kinds = [
    ["UNLOCKER", "PAID_EGRESS", (url: string, o: ProbeOptions) => probeUnlocker({ url, apiKey: KEY, zone: "z" }, o)],
    [
      "CLOUDFLARE_RENDER",
      "BROWSER_PROVIDER",
      (url: string, o: ProbeOptions) => probeCloudflare({ url, accountId: "0".repeat(32), apiToken: KEY }, o),
    ],
  ] as const;

  it.each(kinds)("of %s: a dead API is the provider's failure", async (_route, origin, probe) => {
    let url = "";
    {
      await using api = await startUnlockerApi();
      ({ url } = api);
    }
    expect(await probe(url, options())).toMatchObject({ ok: false, failure: { code: "PROVIDER_FAILURE", origin } });
  });

  it.each(kinds)("of %s ends at its timeout and at its signal, and leaves no socket", async (_route, origin, probe) => {
    await using api = await startProviderServer(() => "HANG");
    expect(await probe(api.url, options({ timeoutMs: 200 }))).toMatchObject({
      ok: false,
      failure: { code: "RESPONSE_TIMEOUT", origin },
    });
    await api.allClosed();
    const controller = new AbortController();
    const probing = probe(api.url, options({ signal: controller.signal }));
    await api.call(2);
    controller.abort();
    expect((await probing).ok).toBe(false);
    await api.allClosed();
  });

  it.each(kinds)("of %s: HTML instead of JSON is no success", async (_route, origin, probe) => {
    await using api = await startProviderServer(() => ({
      status: 200,
      headers: { "content-type": "text/html" },
      body: "<p>hi</p>",
    }));
    expect(await probe(api.url, options())).toMatchObject({ ok: false, failure: { code: "PROVIDER_FAILURE", origin } });
  });

  it.each(kinds)("of %s names no secret that the API repeats", async (_route, _origin, probe) => {
    for (const status of [200, 400, 401, 500]) {
      const body = JSON.stringify({
        status: KEY,
        auth_fail_reason: KEY,
        success: false,
        errors: [{ code: 1, message: KEY }],
      });
      await using api = await startProviderServer(() => ({
        status,
        headers: { "content-type": "application/json", "cf-ray": KEY },
        body,
      }));
      expect(JSON.stringify(await probe(api.url, options()))).not.toContain(KEY);
    }
  });
});
