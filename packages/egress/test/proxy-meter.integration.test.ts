import type { TLSSocket } from "node:tls";
import {
  bytes,
  createGate,
  type OriginBehaviour,
  page,
  readTlsFixture,
  redirect,
  stall,
  startOrigin,
} from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { DEFAULT_EGRESS_LIMITS, type FetchRequest, socketCeilingBytes } from "../src/index.ts";
import { createProxyRig, startZone } from "./proxy-rig.ts";
import { createStubResolver } from "./rig.ts";

const OK = "HTTP/1.1 200 OK\r\n";

/** Bytes as fast as they are taken, for ever. */
function flood(head: string, piece: Buffer | string = Buffer.alloc(65_536, "b")): OriginBehaviour {
  return async (reply) => {
    await reply.write(head);
    while (!reply.isClosed()) await reply.write(piece);
  };
}

describe("the bytes of an attempt on a proxy route", () => {
  it.each([
    ["http", undefined],
    ["https", readTlsFixture("origin")],
  ] as const)("W3 are what the proxy itself counted, all hops and both directions, over %s", async (scheme, tls) => {
    const body = Buffer.alloc(300_000, "x");
    await using origin = await startOrigin({
      paths: { "/moved": redirect("/ok"), "/ok": page(body), "/robots.txt": page("User-agent: *\nAllow: /\n") },
      ...(tls === undefined ? {} : { tls }),
    });
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy);
    const { outcome } = await rig.get(`${scheme}://origin.example.com/moved`, { robots: "RESPECT" });
    expect(outcome.ok).toBe(true);
    await proxy.allClosed();
    expect(proxy.tunnels()).toBe(3);
    expect(outcome.usage.socketBytes).toBe(proxy.bytes());
    expect(outcome.usage.socketBytes).toBeGreaterThan(body.length);
  });

  it("W3 are told of attempts that failed, whatever failed", async () => {
    await using origin = await startOrigin({
      paths: {
        "/404": (reply) => reply.send({ status: 404, body: "x".repeat(1_000) }),
        "/cut": (reply) => reply.end(`${OK}Content-Length: 100\r\n\r\nhello`),
      },
    });
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy);
    let told = 0;
    for (const path of ["/404", "/cut"]) {
      const { outcome } = await rig.get(`http://origin.example.com${path}`, { accept: "SUCCESS_ONLY" });
      expect(outcome.ok).toBe(false);
      told += outcome.usage.socketBytes;
    }
    proxy.setRule(() => ({ do: "REFUSE", status: 403, body: "no" }));
    const refused = await rig.get("http://origin.example.com/404");
    told += refused.outcome.usage.socketBytes;
    await proxy.allClosed();
    expect(refused.outcome.usage.socketBytes).toBeGreaterThan(100);
    expect(told).toBe(proxy.bytes());
  });

  // Each of these gets past every other limit: hops that are not read, headers within their own limit, what TLS carries.
  it.each<[string, OriginBehaviour, Partial<FetchRequest>]>([
    ["chunk extensions", flood(`${OK}Transfer-Encoding: chunked\r\n\r\n5;`, "e".repeat(16_384)), {}],
    ["an endless body", flood(`${OK}\r\n`), {}],
    ["tiny chunks", flood(`${OK}Transfer-Encoding: chunked\r\n\r\n`, `1${";".padEnd(400, "x")}\r\nb\r\n`), {}],
  ])("W3 W9 never exceed the ceiling that was paid for: %s", async (_what, behaviour, overrides) => {
    // A socket that is closed under its TLS fails an assertion of undici's outside of any request.
    const uncaught: unknown[] = [];
    const onUncaught = (error: unknown): void => {
      uncaught.push(error);
    };
    process.on("uncaughtException", onUncaught);
    for (const maxBodyBytes of [1, 500_000]) {
      await using origin = await startOrigin({ paths: { "/start": behaviour }, tls: readTlsFixture("origin") });
      await using proxy = await startZone(origin);
      await using rig = createProxyRig(proxy);
      const { outcome } = await rig.get("https://origin.example.com/start", { maxBodyBytes, ...overrides });
      expect(outcome).toMatchObject({ ok: false, failure: { code: "BODY_TOO_LARGE", disposition: "TERMINAL" } });
      expect(outcome.usage.socketBytes).toBeLessThanOrEqual(socketCeilingBytes(DEFAULT_EGRESS_LIMITS, maxBodyBytes));
      await proxy.allClosed();
      await origin.allClosed();
      expect(rig.transport.sockets()).toBe(0);
    }
    process.off("uncaughtException", onUncaught);
    expect(uncaught).toEqual([]);
  });

  it("W3 W9 count over all hops together: redirects whose bodies nobody reads come to an end", async () => {
    const hop = (to: string): OriginBehaviour => flood(`HTTP/1.1 302 Found\r\nLocation: ${to}\r\n\r\n`);
    await using origin = await startOrigin({
      paths: {
        "/1": hop("/2"),
        "/2": hop("/3"),
        "/3": hop("/4"),
        "/4": hop("/5"),
        "/5": hop("/6"),
        "/6": flood(`${OK}\r\n`),
      },
    });
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy);
    const { outcome } = await rig.get("http://origin.example.com/1", { maxBodyBytes: 1 });
    expect(outcome).toMatchObject({ ok: false, failure: { code: "BODY_TOO_LARGE" } });
    expect(outcome.usage.socketBytes).toBeLessThanOrEqual(socketCeilingBytes(DEFAULT_EGRESS_LIMITS, 1));
  });

  it("W3 W9 a proxy that floods its answer to CONNECT ends at the head's limit, far below the ceiling", async () => {
    await using origin = await startOrigin();
    await using proxy = await startZone(origin, { rule: () => ({ do: "FLOOD_HEADERS" }) });
    await using rig = createProxyRig(proxy);
    const { outcome } = await rig.get("http://origin.example.com/", { maxBodyBytes: 1 });
    expect(outcome.usage.socketBytes).toBeLessThanOrEqual(socketCeilingBytes(DEFAULT_EGRESS_LIMITS, 1));
  });

  it("W3 W9 a body as large as it may be arrives whole from a server that writes small TLS records", async () => {
    // 22 bytes more for every 1,400: more than the slack of a small body.
    const maxBodyBytes = 30_000_000;
    const body = Buffer.alloc(maxBodyBytes, "x");
    await using origin = await startOrigin({
      paths: {
        "/large": (reply) => {
          (reply.socket as TLSSocket).setMaxSendFragment(1_400);
          return reply.send({ body });
        },
      },
      tls: readTlsFixture("origin"),
    });
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy);
    const { outcome, body: received } = await rig.get("https://origin.example.com/large", { maxBodyBytes });
    expect(outcome).toMatchObject({ ok: true });
    expect(received.length).toBe(maxBodyBytes);
    expect(outcome.usage.socketBytes).toBeGreaterThan(1.015 * maxBodyBytes);
    expect(outcome.usage.socketBytes).toBeLessThanOrEqual(socketCeilingBytes(DEFAULT_EGRESS_LIMITS, maxBodyBytes));
  });

  it("W3 what goes up counts as what comes down", async () => {
    await using origin = await startOrigin({ paths: { "/ok": page("hello") } });
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy);
    const small = await rig.get("http://origin.example.com/ok");
    const large = await rig.get("http://origin.example.com/ok", { headers: { referer: "f".repeat(5_000) } });
    expect(large.outcome.usage.socketBytes - small.outcome.usage.socketBytes).toBeGreaterThanOrEqual(5_000);
  });
});

describe("the end of an attempt on a proxy route", () => {
  type Phase = readonly [phase: string, sent: boolean, begin: (at: () => void) => Promise<Scene>];
  type Scene = AsyncDisposable & {
    readonly url: string;
    readonly rig: ReturnType<typeof createProxyRig>;
    closed(): Promise<void>;
  };

  async function scene(
    tls: boolean,
    behaviour: OriginBehaviour | "TAKEN",
    rule: Parameters<Awaited<ReturnType<typeof startZone>>["setRule"]>[0],
    resolver = createStubResolver(),
  ): Promise<Scene> {
    const origin = await startOrigin({
      ...(behaviour === "TAKEN" ? { onConnection: () => "TAKEN" as const } : { paths: { "/ok": behaviour } }),
      ...(tls && behaviour !== "TAKEN" ? { tls: readTlsFixture("origin") } : {}),
    });
    const proxy = await startZone(origin, { rule: rule ?? (() => null) });
    const rig = createProxyRig(proxy, { resolver });
    return {
      url: `${tls ? "https" : "http"}://origin.example.com/ok`,
      rig,
      async closed() {
        await proxy.allClosed();
        await origin.allClosed();
      },
      async [Symbol.asyncDispose]() {
        await rig[Symbol.asyncDispose]();
        await proxy[Symbol.asyncDispose]();
        await origin[Symbol.asyncDispose]();
      },
    };
  }

  const PHASES: readonly Phase[] = [
    [
      "DNS",
      false,
      (at) =>
        scene(false, page("hello"), null, {
          asked: [],
          resolve: (_name, { signal }) =>
            new Promise((_resolve, reject) => {
              at();
              signal.addEventListener("abort", () => {
                reject(signal.reason as Error);
              });
            }),
        }),
    ],
    ["CONNECT", false, (at) => scene(false, page("hello"), () => (at(), { do: "STAY_SILENT" }))],
    ["CONNECT's head", false, (at) => scene(false, page("hello"), () => (at(), { do: "DRIP_HEADERS" }))],
    ["TLS", false, (at) => scene(true, "TAKEN", () => (at(), null))],
    ["head", true, (at) => scene(true, (reply) => (at(), reply.closed), null)],
    [
      "body",
      true,
      (at) =>
        scene(
          true,
          async (reply) => {
            await reply.write(`${OK}Content-Length: 9\r\n\r\nhello`);
            at();
            await reply.closed;
          },
          null,
        ),
    ],
  ];

  it.each(PHASES)("W9 J5 the deadline ends it in %s, and leaves no socket", async (_phase, sent, begin) => {
    await using stage = await begin(() => {});
    const startedAt = performance.now();
    const { outcome } = await stage.rig.get(stage.url, { deadline: startedAt + 250 });
    expect(performance.now() - startedAt).toBeLessThan(3_000);
    expect(outcome).toMatchObject({ ok: false, aborted: false, sent, failure: { code: "DEADLINE_EXCEEDED" } });
    expect(stage.rig.transport.sockets()).toBe(0);
    await stage.closed();
  });

  it.each(PHASES)("W9 its caller's signal ends it in %s, and leaves no socket", async (_phase, sent, begin) => {
    const controller = new AbortController();
    const reached = createGate();
    await using stage = await begin(() => {
      reached.open();
    });
    const fetching = stage.rig.get(stage.url, {}, controller.signal);
    await reached.opened;
    controller.abort();
    expect((await fetching).outcome).toMatchObject({ ok: false, aborted: true, sent, failure: null, wait: null });
    expect(stage.rig.transport.sockets()).toBe(0);
    await stage.closed();
  });

  it("W9 the deadline ends it while the proxy itself cannot be reached", async () => {
    await using origin = await startOrigin();
    await using proxy = await startZone(origin);
    // TEST-NET-1: packets to it are answered by nobody, or refused at once by the machine's own network.
    await using rig = createProxyRig(proxy, { route: { url: "http://u:p@192.0.2.1:9" } });
    const startedAt = performance.now();
    const { outcome } = await rig.get("http://origin.example.com/", { deadline: startedAt + 250 });
    expect(performance.now() - startedAt).toBeLessThan(3_000);
    expect(outcome).toMatchObject({ ok: false, sent: false, usage: { socketBytes: 0 } });
    expect(rig.transport.sockets()).toBe(0);
  });

  it("W10 closing the transport ends what runs and opens nothing more", async () => {
    await using origin = await startOrigin({
      paths: { "/ok": stall(`${OK}Content-Length: 9\r\n\r\nhello`), "/now": bytes("") },
    });
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy);
    const running = rig.get("http://origin.example.com/ok");
    await origin.request(1);
    await rig.transport.close(performance.now());
    expect((await running).outcome).toMatchObject({ ok: false, aborted: true });
    await proxy.allClosed();
    expect((await rig.get("http://origin.example.com/ok")).outcome).toMatchObject({
      ok: false,
      aborted: true,
      sent: false,
    });
    expect(proxy.connections()).toBe(1);
  });
});
