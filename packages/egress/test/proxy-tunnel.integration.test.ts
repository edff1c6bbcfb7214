import { Buffer } from "node:buffer";
import { page, readTlsFixture, redirect, startConnectProxy, startOrigin } from "@keble-scraper/testkit";
import { describe, expect, it, vi } from "vitest";
import { ADMIT_ALL, createProxyTransport, vetUrl } from "../src/index.ts";
import { createProxyRig, startZone, ZONE } from "./proxy-rig.ts";
import { createStubResolver, PUBLIC_ADDRESS } from "./rig.ts";

const PAGES = { "/ok": page("hello") };
const BASIC = Buffer.from(`${ZONE.userName}:${ZONE.password}`).toString("base64");

describe("the CONNECT of a proxy route", () => {
  it("P1 asks for the vetted address, and speaks TLS with the URL's name inside", async () => {
    await using origin = await startOrigin({ paths: PAGES, tls: readTlsFixture("origin") });
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy);
    const { outcome, body } = await rig.get("https://origin.example.com/ok");
    expect(outcome).toMatchObject({ ok: true, sent: true, response: { httpStatus: 200 } });
    expect(body.toString()).toBe("hello");
    expect(proxy.asked).toMatchObject([
      { method: "CONNECT", authority: `${PUBLIC_ADDRESS}:443`, headers: { host: `${PUBLIC_ADDRESS}:443` } },
    ]);
    expect(origin.requests[0]).toMatchObject({
      serverName: "origin.example.com",
      headers: { host: "origin.example.com" },
    });
  });

  it("P2 tunnels plain http too", async () => {
    await using origin = await startOrigin({ paths: PAGES });
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy);
    const { outcome } = await rig.get("http://origin.example.com:8080/ok?q=1");
    expect(outcome.ok).toBe(true);
    expect(proxy.asked).toMatchObject([{ method: "CONNECT", authority: `${PUBLIC_ADDRESS}:8080` }]);
    expect(origin.requests[0]).toMatchObject({ target: "/ok?q=1", headers: { host: "origin.example.com:8080" } });
  });

  it("W6 an IPv6 address stands in brackets, and a literal in the URL is asked for as it is", async () => {
    await using origin = await startOrigin({ paths: PAGES });
    await using proxy = await startZone(origin);
    const resolver = createStubResolver({ "origin.example.com": ["2606:4700::1"] });
    await using rig = createProxyRig(proxy, { resolver });
    expect((await rig.get("http://origin.example.com/ok")).outcome.ok).toBe(true);
    expect((await rig.get(`http://${PUBLIC_ADDRESS}/ok`)).outcome.ok).toBe(true);
    expect(proxy.asked.map(({ authority }) => authority)).toEqual(["[2606:4700::1]:80", `${PUBLIC_ADDRESS}:80`]);
    expect(resolver.asked).toEqual(["origin.example.com"]);
  });

  it("W6 sends the proxy's credentials to nobody but the proxy", async () => {
    await using origin = await startOrigin({ paths: { ...PAGES, "/moved": redirect("/ok") } });
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy);
    const { outcome } = await rig.get("http://origin.example.com/moved");
    expect(outcome.ok).toBe(true);
    expect(proxy.asked.every(({ isAuthorized }) => isAuthorized)).toBe(true);
    const seen = JSON.stringify([origin.requests, outcome]);
    for (const secret of [ZONE.password, ZONE.userName, BASIC, "roxy-"]) expect(seen).not.toContain(secret);
  });

  it("W6 opens a fresh tunnel for every hop and shares none between jobs of one caller", async () => {
    await using origin = await startOrigin({ paths: { ...PAGES, "/moved": redirect("/ok") } });
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy);
    for (let job = 0; job < 3; job += 1)
      expect((await rig.get("http://origin.example.com/moved")).outcome.ok).toBe(true);
    expect(proxy.tunnels()).toBe(6);
    expect(origin.connections()).toBe(6);
    await proxy.allClosed();
    expect(rig.transport.sockets()).toBe(0);
  });

  it("W6 vets every hop: a name that turns private is refused before the proxy hears of it", async () => {
    await using origin = await startOrigin({ paths: { "/moved": redirect("http://internal.example.com/") } });
    await using proxy = await startZone(origin);
    const resolver = createStubResolver({ "internal.example.com": ["93.184.216.34", "10.0.0.5"] });
    await using rig = createProxyRig(proxy, { resolver });
    expect((await rig.get("http://internal.example.com/")).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "TARGET_FORBIDDEN" },
    });
    expect(proxy.connections()).toBe(0);
    const { outcome } = await rig.get("http://origin.example.com/moved");
    expect(outcome).toMatchObject({ ok: false, failure: { code: "REDIRECT_FORBIDDEN" } });
    expect(proxy.asked.map(({ authority }) => authority)).toEqual([`${PUBLIC_ADDRESS}:80`]);
  });

  it("W6 P14 neither the proxy's own address nor a private one becomes fetchable through it", async () => {
    await using proxy = await startConnectProxy({ to: 1 });
    for (const url of [`http://127.0.0.1:${proxy.port}/`, "http://localhost./", "http://10.0.0.1/"]) {
      expect(vetUrl(url).ok).toBe(false);
    }
    await using rig = createProxyRig(proxy, { resolver: createStubResolver({ "proxy.example.com": ["127.0.0.1"] }) });
    expect((await rig.get(`http://proxy.example.com:${proxy.port}/`)).outcome).toMatchObject({
      ok: false,
      failure: { code: "TARGET_FORBIDDEN" },
    });
    expect(proxy.connections()).toBe(0);
  });

  it("W6 the environment's proxies change nothing", async () => {
    vi.stubEnv("HTTP_PROXY", "http://127.0.0.1:1");
    vi.stubEnv("NO_PROXY", "*");
    vi.stubEnv("NODE_USE_ENV_PROXY", "1");
    try {
      await using origin = await startOrigin({ paths: PAGES });
      await using proxy = await startZone(origin);
      await using rig = createProxyRig(proxy);
      expect((await rig.get("http://origin.example.com/ok")).outcome.ok).toBe(true);
      expect(proxy.tunnels()).toBe(1);
    } finally {
      vi.unstubAllEnvs();
    }
  });

  it("a head that comes byte by byte is a head", async () => {
    await using origin = await startOrigin({ paths: PAGES, tls: readTlsFixture("origin") });
    await using proxy = await startZone(origin, {
      rule: () => ({ do: "TUNNEL", drip: true, headers: { Via: "1.1 p" } }),
    });
    await using rig = createProxyRig(proxy);
    expect((await rig.get("https://origin.example.com/ok")).outcome.ok).toBe(true);
  });

  it("a 2xx has no body, whatever its headers say", async () => {
    await using origin = await startOrigin({ paths: PAGES });
    const headers = { "Content-Length": "5", "Transfer-Encoding": "chunked" };
    await using proxy = await startZone(origin, { rule: () => ({ do: "TUNNEL", headers }) });
    await using rig = createProxyRig(proxy);
    expect((await rig.get("http://origin.example.com/ok")).body.toString()).toBe("hello");
  });

  it("P11 bytes glued behind the head reach TLS: what is no TLS there is a failed handshake", async () => {
    await using origin = await startOrigin({ paths: PAGES, tls: readTlsFixture("origin") });
    await using proxy = await startZone(origin, { rule: () => ({ do: "TUNNEL", glued: "HTTP/1.1 400 No\r\n\r\n" }) });
    await using rig = createProxyRig(proxy);
    expect((await rig.get("https://origin.example.com/ok")).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "TLS_FAILURE", origin: "TARGET" },
    });
    expect(rig.transport.sockets()).toBe(0);
  });

  // They lie there before the request was sent, so they can be no answer to it: as on any connection, nothing is sent.
  it("P11 W6 a whole response glued behind the head is never taken for the answer", async () => {
    await using origin = await startOrigin({ paths: PAGES });
    const glued = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nplants";
    await using proxy = await startZone(origin, { rule: () => ({ do: "TUNNEL", glued }) });
    await using rig = createProxyRig(proxy);
    const { outcome, body } = await rig.get("http://origin.example.com/ok");
    expect(outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "CONNECTION_RESET", disposition: "RETRY" },
    });
    expect(body.length).toBe(0);
    expect(origin.requests).toEqual([]);
  });

  it("P13 a tunnel that leads to another host fails on that host's certificate", async () => {
    await using origin = await startOrigin({ paths: PAGES, tls: readTlsFixture("origin") });
    await using other = await startOrigin({ paths: PAGES, tls: readTlsFixture("other") });
    const to = { host: "127.0.0.1", port: other.port };
    await using proxy = await startZone(origin, { rule: () => ({ do: "TUNNEL", to }) });
    await using rig = createProxyRig(proxy);
    expect((await rig.get("https://origin.example.com/ok")).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "TLS_FAILURE", disposition: "TERMINAL", nativeCode: "ERR_TLS_CERT_ALTNAME_INVALID" },
    });
    expect(other.requests).toEqual([]);
  });
});

describe("a proxy that takes names only", () => {
  const route = { target: "NAME" } as const;

  it("W6 is asked for the name, whose answers were vetted all the same", async () => {
    await using origin = await startOrigin({ paths: PAGES, tls: readTlsFixture("origin") });
    await using proxy = await startZone(origin);
    const resolver = createStubResolver({ "internal.example.com": ["10.0.0.5"] });
    await using rig = createProxyRig(proxy, { route, resolver });
    expect((await rig.get("https://origin.example.com/ok")).outcome.ok).toBe(true);
    expect((await rig.get("https://internal.example.com/ok")).outcome).toMatchObject({
      failure: { code: "TARGET_FORBIDDEN" },
    });
    expect(proxy.asked).toMatchObject([
      { authority: "origin.example.com:443", headers: { host: "origin.example.com:443" } },
    ]);
    expect(resolver.asked).toEqual(["origin.example.com", "internal.example.com"]);
  });

  it.each([
    ["Proxy-Status", 'p.example; next-hop="10.0.0.5"'],
    ["Proxy-Status", 'p.example; next-hop="[::1]:443"'],
    ["Proxy-Status", "p.example; next-hop=127.0.0.1:443"],
    ["Proxy-Status", 'p.example; next-hop="[fe80::1%eth0]:443"'],
    ["Proxy-Status", 'p.example; next-hop="[::ffff:10.0.0.5]"'],
    ["X-BRD-Debug", "req_id=1; destination_ip=169.254.169.254; billed=true"],
  ])("W6 an answer whose %s names a private end is refused: %s", async (name, value) => {
    await using origin = await startOrigin({ paths: { ...PAGES, "/moved": redirect("http://second.example.com/ok") } });
    await using proxy = await startZone(origin, {
      rule: ({ authority }) =>
        authority.startsWith("second.") ? { do: "TUNNEL", headers: { [name]: value } } : { do: "TUNNEL" },
    });
    await using rig = createProxyRig(proxy, { route });
    expect((await rig.get("http://second.example.com/ok")).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "TARGET_FORBIDDEN" },
    });
    expect((await rig.get("http://origin.example.com/moved")).outcome).toMatchObject({
      ok: false,
      failure: { code: "REDIRECT_FORBIDDEN" },
    });
    expect(origin.requests.length).toBe(1);
    await proxy.allClosed();
  });

  it("an answer that names a public end, a name, or a nearer proxy's own next hop is let through", async () => {
    await using origin = await startOrigin({ paths: PAGES });
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy, { route });
    for (const value of [
      `p.example; next-hop="${PUBLIC_ADDRESS}:80"`,
      "p.example; next-hop=origin.example.com",
      `far.example; next-hop="${PUBLIC_ADDRESS}", near.example; next-hop="10.0.0.9"`,
    ]) {
      proxy.setRule(() => ({ do: "TUNNEL", headers: { "Proxy-Status": value } }));
      expect((await rig.get("http://origin.example.com/ok")).outcome.ok).toBe(true);
    }
  });
});

describe("a proxy that was told the address", () => {
  it("may name its own parent's as its next hop", async () => {
    await using origin = await startOrigin({ paths: PAGES });
    const headers = { "Proxy-Status": 'p.example; next-hop="10.0.0.9"' };
    await using proxy = await startZone(origin, { rule: () => ({ do: "TUNNEL", headers }) });
    await using rig = createProxyRig(proxy);
    expect((await rig.get("http://origin.example.com/ok")).outcome.ok).toBe(true);
  });
});

describe("the exit of an attempt", () => {
  const wish = { egress: { country: "us", session: "s1a2" } };

  it("W5 is written into Bright Data's user name, for robots.txt and every hop", async () => {
    await using origin = await startOrigin({
      paths: { ...PAGES, "/moved": redirect("/ok"), "/robots.txt": page("User-agent: *\nAllow: /\n") },
    });
    await using proxy = await startZone(origin, { dialect: "BRIGHT_DATA" });
    await using rig = createProxyRig(proxy, { route: { provider: "BRIGHT_DATA" } });
    const { outcome } = await rig.get("http://origin.example.com/moved", { ...wish, robots: "RESPECT" });
    expect(outcome.ok).toBe(true);
    expect(origin.requests.map(({ path }) => path)).toEqual(["/robots.txt", "/moved", "/ok"]);
    expect(proxy.asked.map(({ parameters }) => parameters)).toEqual(
      Array.from({ length: 3 }, () => ({ country: "us", session: "s1a2" })),
    );
    expect((await rig.get("http://origin.example.com/ok")).outcome.ok).toBe(true);
    expect(proxy.asked.at(-1)?.userName).toBe(ZONE.userName);
  });

  it("W5 changes nothing for another provider's proxy", async () => {
    await using origin = await startOrigin({ paths: PAGES });
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy);
    expect((await rig.get("http://origin.example.com/ok", wish)).outcome.ok).toBe(true);
    expect(proxy.asked[0]?.userName).toBe(ZONE.userName);
  });
});

describe("robots.txt of a proxy route", () => {
  it("is fetched through the proxy, admitted, obeyed, and counted on the attempt that asked for it", async () => {
    await using origin = await startOrigin({
      paths: { ...PAGES, "/robots.txt": page("User-agent: *\nDisallow: /secret\n") },
    });
    await using proxy = await startZone(origin);
    const admitted: string[] = [];
    await using rig = createProxyRig(proxy, {
      admit(hop) {
        admitted.push(`${hop.purpose} ${hop.isFirst}`);
        return ADMIT_ALL(hop);
      },
    });
    const first = await rig.get("http://origin.example.com/secret", { robots: "RESPECT" });
    expect(first.outcome).toMatchObject({ ok: false, sent: false, failure: { code: "ROBOTS_DISALLOWED" } });
    await proxy.allClosed();
    expect(first.outcome.usage.socketBytes).toBe(proxy.bytes());
    const second = await rig.get("http://origin.example.com/ok", { robots: "RESPECT" });
    expect(second.outcome.ok).toBe(true);
    await proxy.allClosed();
    expect(first.outcome.usage.socketBytes + second.outcome.usage.socketBytes).toBe(proxy.bytes());
    expect(admitted).toEqual(["ROBOTS true", "PAGE true"]);
    expect(proxy.tunnels()).toBe(2);
  });
});

describe("what a proxy transport is given", () => {
  const make = (route: object) => () =>
    createProxyTransport({
      route: "RESIDENTIAL",
      resolver: createStubResolver(),
      proxy: { url: "http://u:canary@127.0.0.1:1", provider: "PLAIN", target: "ADDRESS", ...route },
    });

  it("a URL or authorities that cannot be read are refused at once, and not repeated", () => {
    expect(make({ url: "https://u:canary@127.0.0.1:1" })).toThrow(/^(?!.*canary)/);
    expect(make({ authorities: ["no certificate"] })).toThrow("authorities");
    expect(make({ authorities: ["-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"] })).toThrow();
  });
});
