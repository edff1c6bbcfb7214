import {
  type ConnectProxy,
  type Origin,
  type OriginReply,
  page,
  readTestAuthority,
  readTlsFixture,
  redirect,
  startConnectProxy,
  startOrigin,
} from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import {
  ADMIT_ALL,
  allowedTargetsOf,
  createDirectTransport,
  createDohResolver,
  type FetchOutcome,
  type FetchRequest,
  type Resolver,
  vetUrl,
} from "../src/index.ts";
import { createDnsReplies, type DnsZone } from "./dns-server.ts";
import { toRequest } from "./rig.ts";

const PUBLIC = "93.184.216.34";
const PUBLIC_6 = "2606:2800:220:1::1";
const authorities = [readTestAuthority()];
const never = new AbortController().signal;

/** A DNS-over-HTTPS server; `answer` may misbehave. With `tls` it is https for the name other.example.com. */
async function startDoh(
  zone: DnsZone,
  options: { tls?: true; answer?: (reply: OriginReply) => Promise<void> | void } = {},
) {
  const { questions, reply: toReply } = createDnsReplies(zone);
  const origin = await startOrigin({
    ...(options.tls === true ? { tls: readTlsFixture("other") } : {}),
    paths: {
      "/dns-query": async (reply) => {
        if (options.answer !== undefined) {
          await options.answer(reply);
          return;
        }
        const { searchParams } = new URL(reply.request.target, "http://doh.invalid");
        const body = toReply(Buffer.from(searchParams.get("dns") ?? "", "base64url"));
        if (body === null) await reply.closed;
        else await reply.send({ headers: { "Content-Type": "application/dns-message" }, body });
      },
    },
  });
  const url =
    options.tls === true ? "https://other.example.com/dns-query" : `http://127.0.0.1:${origin.port}/dns-query`;
  return { origin, questions, url };
}

/** Sends tunnels for the DNS server's authority to it, and all others to `origin`. */
async function startProxy(doh: Origin, origin: Origin): Promise<ConnectProxy> {
  const isDoh = (authority: string): boolean => authority.startsWith("other.") || authority === `127.0.0.1:${doh.port}`;
  return startConnectProxy({ to: (authority) => (isDoh(authority) ? doh.port : origin.port) });
}

const noSystem: Resolver = {
  resolve: (name) => Promise.reject(new Error(`the system was asked for ${name}`)),
};

async function fetchOnce(
  transport: ReturnType<typeof createDirectTransport>,
  url: string,
  policy: Parameters<typeof vetUrl>[1] = {},
  overrides: Partial<FetchRequest> = {},
): Promise<FetchOutcome> {
  const vetted = vetUrl(url, policy);
  if (!vetted.ok) throw new Error(vetted.reason);
  const request = { ...toRequest("http://origin.example.com/"), url: vetted.url, ...overrides };
  return transport.fetch(request, { write() {} }, { signal: never, admit: ADMIT_ALL });
}

describe("a developer's proxy", () => {
  it("W8 names are asked of the DNS server through the proxy, and the vetted address is tunnelled to", async () => {
    const doh = await startDoh(
      {
        "A origin.example.com": { answers: [PUBLIC], ttl: 60 },
        "AAAA origin.example.com": { answers: [] },
      },
      { tls: true },
    );
    await using dns = doh.origin;
    await using origin = await startOrigin({
      paths: { "/a": redirect("/b"), "/b": page("b") },
      tls: readTlsFixture("origin"),
    });
    await using proxy = await startProxy(dns, origin);
    const transport = createDirectTransport({
      resolver: noSystem,
      developmentEgress: { proxyUrl: proxy.url(), dnsOverHttpsUrl: doh.url },
      overrides: {
        authorities,
        dial() {
          throw new Error("dialled directly");
        },
      },
    });
    expect(await fetchOnce(transport, "https://origin.example.com/a")).toMatchObject({ ok: true });
    expect(doh.questions.toSorted()).toEqual(["A origin.example.com", "AAAA origin.example.com"]);
    expect(proxy.asked.map(({ authority }) => authority).toSorted()).toEqual([
      `${PUBLIC}:443`,
      "other.example.com:443",
      "other.example.com:443",
    ]);
    expect(dns.requests[0]).toMatchObject({ serverName: "other.example.com" });
    expect(origin.requests.map(({ serverName }) => serverName)).toEqual(["origin.example.com", "origin.example.com"]);
    await transport.close(performance.now());
    expect(transport.sockets()).toBe(0);
    await proxy.allClosed();
  });

  it.each([
    ["private", { answers: ["10.0.0.5"] }, { answers: [] }],
    ["half private", { answers: [PUBLIC] }, { answers: ["fd00::1"] }],
    ["mapped", { answers: [] }, { answers: ["::ffff:10.0.0.1"] }],
  ])("W8 an answer of the DNS server that is %s is refused without a tunnel", async (_what, a, aaaa) => {
    const doh = await startDoh({ "A origin.example.com": a, "AAAA origin.example.com": aaaa });
    await using dns = doh.origin;
    await using origin = await startOrigin();
    await using proxy = await startProxy(dns, origin);
    const transport = createDirectTransport({
      resolver: noSystem,
      developmentEgress: { proxyUrl: proxy.url(), dnsOverHttpsUrl: doh.url },
    });
    const outcome = await fetchOnce(transport, "http://origin.example.com/a");
    expect(outcome).toMatchObject({ ok: false, sent: false, failure: { kind: "LOCAL", code: "TARGET_FORBIDDEN" } });
    expect(origin.connections()).toBe(0);
    await transport.close(performance.now());
  });

  it("W8 the certificate is verified for the target's name inside the tunnel", async () => {
    const doh = await startDoh({
      "A origin.example.com": { answers: [PUBLIC] },
      "AAAA origin.example.com": { answers: [] },
    });
    await using dns = doh.origin;
    await using origin = await startOrigin({ tls: readTlsFixture("other") });
    await using proxy = await startProxy(dns, origin);
    const transport = createDirectTransport({
      resolver: noSystem,
      developmentEgress: { proxyUrl: proxy.url(), dnsOverHttpsUrl: doh.url },
      overrides: { authorities },
    });
    expect(await fetchOnce(transport, "https://origin.example.com/a")).toMatchObject({
      failure: { code: "TLS_FAILURE", nativeCode: "ERR_TLS_CERT_ALTNAME_INVALID" },
    });
    await transport.close(performance.now());
  });

  it("W7 W8 listed targets are asked of the system and dialled directly", async () => {
    const doh = await startDoh({});
    await using dns = doh.origin;
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    await using proxy = await startProxy(dns, origin);
    const allowedTargets = allowedTargetsOf([
      { host: "dev-origin", port: origin.port },
      { host: "127.0.0.1", port: origin.port },
    ]);
    const asked: string[] = [];
    const transport = createDirectTransport({
      resolver: {
        resolve(name) {
          asked.push(name);
          return Promise.resolve({ ok: true, addresses: ["127.0.0.1"] });
        },
      },
      policy: { allowedTargets },
      developmentEgress: { proxyUrl: proxy.url(), dnsOverHttpsUrl: doh.url },
    });
    for (const host of ["dev-origin", "127.0.0.1"]) {
      expect(await fetchOnce(transport, `http://${host}:${origin.port}/a`, { allowedTargets })).toMatchObject({
        ok: true,
      });
    }
    expect(asked).toEqual(["dev-origin"]);
    expect([proxy.asked.length, doh.questions.length]).toEqual([0, 0]);
    await transport.close(performance.now());
  });

  it("W8 a proxy that refuses is nobody's account: the target was not reached", async () => {
    const doh = await startDoh({
      "A origin.example.com": { answers: [PUBLIC] },
      "AAAA origin.example.com": { answers: [] },
    });
    await using dns = doh.origin;
    await using proxy = await startConnectProxy({
      to: dns.port,
      rule: ({ authority }) => (authority.startsWith(PUBLIC) ? { do: "REFUSE", status: 407 } : null),
    });
    const transport = createDirectTransport({
      resolver: noSystem,
      developmentEgress: { proxyUrl: proxy.url(), dnsOverHttpsUrl: doh.url },
    });
    expect(await fetchOnce(transport, "http://origin.example.com/a")).toMatchObject({
      ok: false,
      sent: false,
      failure: { origin: "TARGET", code: "CONNECT_FAILURE", disposition: "RETRY" },
    });
    await transport.close(performance.now());
  });
});

describe("a DNS-over-HTTPS resolver", () => {
  it("W8 shares, remembers and ages answers, and keeps its connections", async () => {
    const doh = await startDoh({
      "A a.example.com": { answers: [PUBLIC], ttl: 60 },
      "AAAA a.example.com": { answers: [PUBLIC_6], ttl: 30 },
      "A b.example.com": { answers: [PUBLIC], ttl: 60 },
      "AAAA b.example.com": { answers: [] },
    });
    await using dns = doh.origin;
    await using proxy = await startConnectProxy({ to: dns.port });
    const resolver = createDohResolver({ url: doh.url, proxyUrl: proxy.url() });
    const outcomes = await Promise.all([
      resolver.resolve("a.example.com", { signal: never }),
      resolver.resolve("a.example.com", { signal: never }),
    ]);
    for (const outcome of outcomes) {
      expect(outcome).toEqual({ ok: true, addresses: [PUBLIC, PUBLIC_6], ttlMs: 30_000 });
    }
    await resolver.resolve("a.example.com", { signal: never });
    expect(doh.questions).toHaveLength(2);
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
    await resolver.resolve("b.example.com", { signal: never });
    expect(proxy.connections()).toBe(2);
    await resolver.close();
    await proxy.allClosed();
    expect(resolver.sockets()).toBe(0);
  });

  it("W8 what a cache on the way kept is as much older", async () => {
    const zone = createDnsReplies({
      "A a.example.com": { answers: [PUBLIC], ttl: 60 },
      "AAAA a.example.com": { answers: [] },
    });
    const doh = await startDoh(
      {},
      {
        answer: (reply) => {
          const { searchParams } = new URL(reply.request.target, "http://doh.invalid");
          const body = zone.reply(Buffer.from(searchParams.get("dns") ?? "", "base64url")) ?? "";
          return reply.send({ headers: { "Content-Type": "application/dns-message", Age: "55" }, body });
        },
      },
    );
    await using dns = doh.origin;
    await using proxy = await startConnectProxy({ to: dns.port });
    const resolver = createDohResolver({ url: doh.url, proxyUrl: proxy.url() });
    expect(await resolver.resolve("a.example.com", { signal: never })).toMatchObject({ ttlMs: 5_000 });
    await resolver.close();
  });

  it.each<[string, string, (reply: OriginReply) => Promise<void> | void]>([
    ["a status of its own", "dns_servfail", (reply) => reply.send({ status: 403, body: "no" })],
    ["a page", "dns_servfail", (reply) => reply.send({ headers: { "Content-Type": "text/html" }, body: "<p>hello" })],
    [
      "nonsense",
      "dns_servfail",
      (reply) => reply.send({ headers: { "Content-Type": "application/dns-message" }, body: "hello" }),
    ],
    [
      "an endless reply",
      "dns_servfail",
      async (reply) => {
        await reply.write("HTTP/1.1 200 OK\r\nContent-Type: application/dns-message\r\n\r\n");
        while (!reply.isClosed()) await reply.write(Buffer.alloc(65_536));
      },
    ],
    ["a reset", "dns_servfail", (reply) => reply.reset()],
    ["silence", "dns_timeout", (reply) => reply.closed],
  ])("W8 a server that answers with %s is %s", async (_what, kind, answer) => {
    const doh = await startDoh({}, { answer });
    await using dns = doh.origin;
    await using proxy = await startConnectProxy({ to: dns.port });
    const resolver = createDohResolver({ url: doh.url, proxyUrl: proxy.url(), timeoutMs: 500 });
    expect(await resolver.resolve("a.example.com", { signal: never })).toMatchObject({ ok: false, kind });
    await resolver.close();
    await proxy.allClosed();
  });

  it.each([
    ["NXDOMAIN", "dns_not_found"],
    [{ answers: [] }, "dns_no_address"],
    ["SERVFAIL", "dns_servfail"],
  ] as const)("D5 W8 %j is %s", async (behaviour, kind) => {
    const doh = await startDoh({ "A a.example.com": behaviour, "AAAA a.example.com": behaviour });
    await using dns = doh.origin;
    await using proxy = await startConnectProxy({ to: dns.port });
    const resolver = createDohResolver({ url: doh.url, proxyUrl: proxy.url() });
    expect(await resolver.resolve("a.example.com", { signal: never })).toMatchObject({ ok: false, kind });
    await resolver.close();
  });

  it("W8 a proxy that refuses, or is not there, is a failed look-up", async () => {
    await using proxy = await startConnectProxy({ to: () => null });
    const urls = [proxy.url(), "http://127.0.0.1:1"];
    for (const proxyUrl of urls) {
      const resolver = createDohResolver({ url: "https://dns.example/dns-query", proxyUrl, timeoutMs: 2_000 });
      expect(await resolver.resolve("a.example.com", { signal: never })).toMatchObject({
        ok: false,
        kind: "dns_servfail",
      });
      await resolver.close();
    }
  });

  it("W6 an abort leaves no connection behind", async () => {
    const doh = await startDoh({}, { answer: (reply) => reply.closed });
    await using dns = doh.origin;
    await using proxy = await startConnectProxy({ to: dns.port });
    const resolver = createDohResolver({ url: doh.url, proxyUrl: proxy.url(), timeoutMs: 20_000 });
    const caller = new AbortController();
    const pending = resolver.resolve("a.example.com", { signal: caller.signal });
    await dns.request(2);
    caller.abort(new Error("gone"));
    await expect(pending).rejects.toThrow("gone");
    await proxy.allClosed();
  });

  it.each([
    "http://dns.example/dns-query",
    "http://10.0.0.1/dns-query",
    "http://127.0.0.1.evil.example/dns-query",
    "ftp://127.0.0.1/",
    "https://user:pass@dns.example/",
    "nonsense",
  ])("W8 %s is no server to ask", (url) => {
    expect(() => createDohResolver({ url, proxyUrl: "http://127.0.0.1:3128" })).toThrow();
  });
});
