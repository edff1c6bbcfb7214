import { type AddressInfo, createServer } from "node:net";
import {
  brightDataRefusal,
  type BrightDataErrorStyle,
  page,
  type ProxyAnswer,
  startConnectProxy,
  startOrigin,
  unverifiedAccountRefusal,
} from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { probeProxy, quarantineOf } from "../src/index.ts";
import { createProxyRig, startZone, ZONE } from "./proxy-rig.ts";
import { createStubResolver } from "./rig.ts";

const URL_OK = "http://origin.example.com/ok";
const PAGES = { "/ok": page("hello") };

/** The failure of a fetch through a proxy that answers so, after everything that such a failure must leave behind was checked. */
async function failureOf(
  answer: ProxyAnswer,
  provider: "PLAIN" | "BRIGHT_DATA" = "PLAIN",
  limits: object = {},
  egress = { country: null as string | null, session: null },
) {
  await using origin = await startOrigin({ paths: PAGES });
  await using proxy = await startZone(origin, { dialect: provider, rule: () => answer });
  await using rig = createProxyRig(proxy, { route: { provider }, limits });
  const { outcome } = await rig.get(URL_OK, { egress });
  if (outcome.ok || outcome.aborted) throw new Error("the fetch did not fail");
  expect(outcome).toMatchObject({ sent: false, httpStatus: null });
  expect(outcome.usage.socketBytes).toBeGreaterThan(0);
  expect(JSON.stringify(outcome)).not.toContain(ZONE.password);
  await proxy.allClosed();
  expect(rig.transport.sockets()).toBe(0);
  expect(origin.requests).toEqual([]);
  return outcome.failure;
}

const SHORT = { connectTimeoutMs: 250 };

describe("W4 a proxy that will not", () => {
  it.each<[string, ProxyAnswer, object]>([
    ["P6 403", { do: "REFUSE", status: 403 }, { code: "PROXY_FAILURE", disposition: "TERMINAL", httpStatus: 403 }],
    ["P10 502", { do: "REFUSE", status: 502 }, { code: "PROXY_FAILURE", disposition: "RETRY", httpStatus: 502 }],
    ["P10 503", { do: "REFUSE", status: 503 }, { code: "PROXY_FAILURE", disposition: "RETRY", httpStatus: 503 }],
    ["P10 504", { do: "REFUSE", status: 504 }, { code: "PROXY_FAILURE", disposition: "RETRY", httpStatus: 504 }],
    [
      "P12 a FIN",
      { do: "CLOSE", by: "FIN" },
      { code: "PROXY_FAILURE", disposition: "RETRY", nativeCode: "PROXY_CLOSED" },
    ],
    ["P12 a reset", { do: "CLOSE", by: "RST" }, { code: "PROXY_FAILURE", disposition: "RETRY" }],
    [
      "P9 a flood of headers",
      { do: "FLOOD_HEADERS" },
      { code: "PROXY_FAILURE", disposition: "RETRY", nativeCode: "PROXY_HEAD_TOO_LARGE" },
    ],
    [
      "P10 an answer that is no HTTP",
      { do: "WRITE", bytes: "SSH-2.0-OpenSSH_9.6\r\n" },
      { code: "PROXY_FAILURE", disposition: "RETRY", nativeCode: "PROXY_MALFORMED_ANSWER" },
    ],
    [
      "P10 HTML",
      { do: "WRITE", bytes: "<html>Welcome to the hotel</html>" },
      { code: "PROXY_FAILURE", disposition: "RETRY", nativeCode: "PROXY_MALFORMED_ANSWER" },
    ],
  ])("%s is blamed on the proxy", async (_what, answer, expected) => {
    expect(await failureOf(answer)).toMatchObject({ origin: "PAID_EGRESS", ...expected });
  });

  it.each<[string, ProxyAnswer]>([
    ["P8 is silent", { do: "STAY_SILENT" }],
    ["P9 sends a header line now and then", { do: "DRIP_HEADERS" }],
  ])("W9 %s ends at our limit, and is worth a retry", async (_what, answer) => {
    const startedAt = performance.now();
    expect(await failureOf(answer, "PLAIN", SHORT)).toMatchObject({
      code: "PROXY_FAILURE",
      origin: "PAID_EGRESS",
      disposition: "RETRY",
      nativeCode: "PROXY_TIMEOUT",
    });
    expect(performance.now() - startedAt).toBeLessThan(3_000);
  });

  it("P7 W4 a wrong password quarantines the route", async () => {
    await using origin = await startOrigin({ paths: PAGES });
    for (const dialect of ["PLAIN", "BRIGHT_DATA"] as const) {
      await using proxy = await startZone(origin, { dialect });
      const url = proxy.url({ ...ZONE, password: "wrong-canary" });
      await using rig = createProxyRig(proxy, { route: { provider: dialect, url } });
      const { outcome } = await rig.get(URL_OK);
      expect(outcome).toMatchObject({
        ok: false,
        sent: false,
        failure: { code: "PROVIDER_AUTH", disposition: "RETRY_NEXT_ROUTE", action: "FIX_CREDENTIALS", httpStatus: 407 },
      });
      expect(!outcome.ok && !outcome.aborted && quarantineOf(outcome.failure)?.forMs).toBe(15 * 60_000);
      expect(JSON.stringify(outcome)).not.toContain("wrong-canary");
    }
    expect(origin.requests).toEqual([]);
  });

  it("P12 a proxy that is not there is worth a retry, and no fault of the target", async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    await using proxy = await startConnectProxy({ to: 1 });
    await using rig = createProxyRig(proxy, { route: { url: `http://u:p@127.0.0.1:${port}` } });
    expect((await rig.get(URL_OK)).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "PROXY_FAILURE", origin: "PAID_EGRESS", disposition: "RETRY", nativeCode: "ECONNREFUSED" },
      usage: { socketBytes: 0 },
    });
    expect(rig.transport.sockets()).toBe(0);
  });
});

describe("W4 Bright Data", () => {
  const styles: readonly BrightDataErrorStyle[] = [
    "BRD",
    "UNLOCKER",
    "LUMINATI",
    "PROXY_STATUS",
    "PROXY_STATUS_UNQUOTED",
  ];

  it.each([
    ["client_10020", 407, { code: "PROVIDER_PAYMENT", action: "PAY_SUPPLIER" }],
    ["client_10100", 502, { code: "PROVIDER_QUOTA", action: "QUARANTINE_ROUTE" }],
    ["policy_20050", 403, { code: "PROVIDER_POLICY", disposition: "RETRY_NEXT_ROUTE" }],
    ["policy_20140", 402, { code: "PROVIDER_POLICY", disposition: "RETRY_NEXT_ROUTE" }],
    ["target_40001", 502, { code: "DNS_FAILURE", origin: "TARGET", disposition: "TERMINAL" }],
  ] as const)("%s is read off the wire, however it is written", async (nativeCode, status, expected) => {
    for (const style of styles) {
      const failure = await failureOf(brightDataRefusal(status, nativeCode, "in words", style), "BRIGHT_DATA");
      expect(failure).toMatchObject({ ...expected, nativeCode, httpStatus: status });
    }
  });

  it("an account that nobody verified says so in the body", async () => {
    const failure = await failureOf(unverifiedAccountRefusal(), "BRIGHT_DATA");
    expect(failure).toMatchObject({ code: "PROVIDER_AUTH", nativeCode: "kyc_required" });
  });

  it("a body that never comes is not waited for beyond our limit", async () => {
    const bytes = "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{";
    const failure = await failureOf({ do: "WRITE", bytes }, "BRIGHT_DATA", SHORT);
    expect(failure).toMatchObject({ code: "PROVIDER_POLICY", httpStatus: 403 });
  });

  it("a country it does not know does not shut the route for everybody", async () => {
    const egress = { country: "zz", session: null };
    const failure = await failureOf(brightDataRefusal(407, "client_10001"), "BRIGHT_DATA", {}, egress);
    expect(failure).toMatchObject({ code: "PROVIDER_POLICY" });
    expect(quarantineOf(failure)).toBeNull();
  });

  it("a zone serves until it is spent, and again when it is filled up", async () => {
    await using origin = await startOrigin({ paths: PAGES });
    await using proxy = await startZone(origin, { dialect: "BRIGHT_DATA", quota: { requests: 2 } });
    await using rig = createProxyRig(proxy, { route: { provider: "BRIGHT_DATA" } });
    const codes = [];
    for (let round = 0; round < 3; round += 1) {
      const { outcome } = await rig.get(URL_OK);
      codes.push(outcome.ok ? "OK" : outcome.failure?.code);
    }
    expect(codes).toEqual(["OK", "OK", "PROVIDER_QUOTA"]);
    proxy.setQuota({ bytes: 1_000_000 });
    expect((await rig.get(URL_OK)).outcome.ok).toBe(true);
  });
});

describe("W6 the next vetted address", () => {
  const resolver = createStubResolver({ "origin.example.com": ["93.184.216.34", "93.184.216.35"] });

  it.each<[string, "PLAIN" | "BRIGHT_DATA", ProxyAnswer]>([
    ["a bare 502", "PLAIN", { do: "REFUSE", status: 502 }],
    [
      "a refused connection",
      "PLAIN",
      { do: "REFUSE", status: 502, headers: { "Proxy-Status": "p; error=connection_refused" } },
    ],
    ["target_40020", "BRIGHT_DATA", brightDataRefusal(502, "target_40020")],
  ])("is tried after %s", async (_what, dialect, answer) => {
    await using origin = await startOrigin({ paths: PAGES });
    await using proxy = await startZone(origin, {
      dialect,
      rule: ({ authority }) => (authority.startsWith("93.184.216.34") ? answer : null),
    });
    await using rig = createProxyRig(proxy, { resolver, route: { provider: dialect } });
    expect((await rig.get(URL_OK)).outcome.ok).toBe(true);
    expect(proxy.asked.map(({ authority }) => authority)).toEqual(["93.184.216.34:80", "93.184.216.35:80"]);
  });

  it.each<[string, ProxyAnswer]>([
    ["a 403", { do: "REFUSE", status: 403 }],
    ["a spent zone", brightDataRefusal(502, "client_10100")],
    ["a policy", brightDataRefusal(403, "policy_20050")],
    ["a closed connection", { do: "CLOSE", by: "FIN" }],
  ])("is not tried after %s: the answer would be the same", async (_what, answer) => {
    await using origin = await startOrigin({ paths: PAGES });
    await using proxy = await startZone(origin, { dialect: "BRIGHT_DATA", rule: () => answer });
    await using rig = createProxyRig(proxy, { resolver, route: { provider: "BRIGHT_DATA" } });
    expect((await rig.get(URL_OK)).outcome.ok).toBe(false);
    expect(proxy.asked.length).toBe(1);
  });
});

describe("W4 a probe", () => {
  const options = { timeoutMs: 5_000, signal: new AbortController().signal };

  it("costs one CONNECT to the supplier's test target, with nothing inside it", async () => {
    await using origin = await startOrigin();
    await using proxy = await startZone(origin, { dialect: "BRIGHT_DATA" });
    expect(await probeProxy({ url: proxy.url(), provider: "BRIGHT_DATA" }, options)).toEqual({ ok: true });
    await proxy.allClosed();
    expect(proxy.asked.map(({ authority }) => authority)).toEqual(["geo.brdtest.com:443"]);
    expect(proxy.bytes()).toBeLessThan(500);
    expect(origin.requests).toEqual([]);
  });

  it("takes the target it is given, and another proxy's own address else", async () => {
    await using origin = await startOrigin();
    await using proxy = await startZone(origin);
    const route = { url: proxy.url(), provider: "PLAIN" } as const;
    expect(await probeProxy(route, options)).toEqual({ ok: true });
    expect(await probeProxy(route, { ...options, target: "test.example.com:443" })).toEqual({ ok: true });
    expect(proxy.asked.map(({ authority }) => authority)).toEqual([`127.0.0.1:${proxy.port}`, "test.example.com:443"]);
  });

  it("tells a mended account from one that is not", async () => {
    await using origin = await startOrigin();
    await using proxy = await startZone(origin, {
      dialect: "BRIGHT_DATA",
      rule: () => brightDataRefusal(407, "client_10020"),
    });
    const route = { url: proxy.url(), provider: "BRIGHT_DATA" } as const;
    expect(await probeProxy(route, options)).toMatchObject({ ok: false, failure: { code: "PROVIDER_PAYMENT" } });
    const wrong = { ...route, url: proxy.url({ ...ZONE, password: "wrong" }) };
    expect(await probeProxy(wrong, options)).toMatchObject({ ok: false, failure: { code: "PROVIDER_AUTH" } });
    proxy.setRule(null);
    expect(await probeProxy(route, options)).toEqual({ ok: true });
    await proxy.allClosed();
  });

  it("another proxy that knows us and will not connect to the test's target is well", async () => {
    await using origin = await startOrigin();
    await using proxy = await startZone(origin, { rule: () => ({ do: "REFUSE", status: 403 }) });
    expect(await probeProxy({ url: proxy.url(), provider: "PLAIN" }, options)).toEqual({ ok: true });
    const wrong = { url: proxy.url({ ...ZONE, password: "wrong" }), provider: "PLAIN" } as const;
    expect(await probeProxy(wrong, options)).toMatchObject({ ok: false, failure: { code: "PROVIDER_AUTH" } });
  });

  it("ends at its own limit, at its caller's word, and leaves no socket", async () => {
    await using origin = await startOrigin();
    await using proxy = await startZone(origin, { rule: () => ({ do: "STAY_SILENT" }) });
    const route = { url: proxy.url(), provider: "PLAIN" } as const;
    const silent = { ok: false, failure: { code: "PROXY_FAILURE", nativeCode: "PROXY_TIMEOUT" } };
    expect(await probeProxy(route, { ...options, timeoutMs: 100 })).toMatchObject(silent);
    const controller = new AbortController();
    const aborted = probeProxy(route, { ...options, signal: controller.signal });
    await proxy.request(2);
    controller.abort();
    expect(await aborted).toMatchObject(silent);
    await proxy.allClosed();
  });
});
