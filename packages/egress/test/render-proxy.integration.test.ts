import { type AddressInfo, connect, createServer } from "node:net";
import { once } from "node:events";
import { type Origin, page, startOrigin } from "@keble-scraper/testkit";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ForwardProxy, openForwardProxy } from "../src/render/forward-proxy.ts";
import type { ProxyJob } from "../src/render/proxy-job.ts";
import { createDirectDialer } from "../src/transport/dial.ts";
import { DEFAULT_EGRESS_LIMITS } from "../src/transport/egress-limits.ts";
import { createStop } from "../src/transport/stop.ts";
import { parseAllowedTargets } from "../src/index.ts";
import { createStubResolver, PUBLIC_ADDRESS } from "./rig.ts";

let origin: Origin;
let proxy: ForwardProxy;
const dialled: string[] = [];
const resolver = createStubResolver({
  "inside.example.com": ["10.0.0.5"],
  "mixed.example.com": [PUBLIC_ADDRESS, "::1"],
});
const limits = { ...DEFAULT_EGRESS_LIMITS, connectTimeoutMs: 300, responseTimeoutMs: 300 };

async function open(allowed: readonly string[] = []): Promise<ForwardProxy> {
  const parsed = parseAllowedTargets(allowed);
  if (!parsed.ok) throw new Error("a bad target");
  const dial = createDirectDialer({
    dial(address, port) {
      dialled.push(`${address}:${port}`);
      return { host: "127.0.0.1", port: address === PUBLIC_ADDRESS ? origin.port : port };
    },
  });
  return openForwardProxy({ resolver, policy: { allowedTargets: parsed.targets }, limits, dial });
}

beforeEach(async () => {
  dialled.length = 0;
  origin = await startOrigin({ paths: { "/": page("hello") } });
  proxy = await open();
});
afterEach(async () => {
  await proxy.close();
  expect(proxy.sockets()).toBe(0);
  await origin.stop();
});

function openJob(budgetBytes = 1_000_000, at = proxy): ProxyJob {
  const stop = createStop({ signal: new AbortController().signal, deadline: Infinity, limitMs: 20_000, nowMs: 0 });
  return at.openJob(stop, budgetBytes);
}

/** Everything that the proxy answers to these bytes until it closes; `tail` is written once there is an answer. */
async function ask(
  head: string,
  job: ProxyJob | null,
  options: { tail?: string; at?: ForwardProxy } = {},
): Promise<string> {
  const socket = connect((options.at ?? proxy).port, "127.0.0.1");
  const authority =
    job === null
      ? ""
      : `Proxy-Authorization: Basic ${Buffer.from(`${job.credentials.username}:${job.credentials.password}`).toString("base64")}\r\n`;
  socket.write(`${head}\r\n${authority}\r\n`);
  let text = "";
  socket.on("data", (data) => {
    if (text === "" && options.tail !== undefined) socket.write(options.tail);
    text += data.toString("latin1");
  });
  socket.on("error", () => {});
  await once(socket, "close");
  return text;
}

const get = (url: string): string => `GET ${url} HTTP/1.1\r\nHost: ${new URL(url).host}`;

describe("the forward proxy", () => {
  it("serves nobody without a running job's credentials", async () => {
    const job = openJob();
    const strange = { ...job, credentials: { ...job.credentials, password: "guessed" } };
    for (const who of [null, strange]) {
      expect(await ask(get("http://a.example.com/"), who)).toMatch(/^HTTP\/1.1 407 .*\r\nProxy-Authenticate: Basic/s);
      expect(await ask("CONNECT a.example.com:443 HTTP/1.1", who)).toMatch(/^HTTP\/1.1 407 /);
    }
    expect(await ask(get("http://a.example.com/"), job)).toMatch(/^HTTP\/1.1 200 OK.*hello$/s);
    job.close();
    expect(await ask(get("http://a.example.com/"), job)).toMatch(/^HTTP\/1.1 407 /);
    expect(origin.requests.length).toBe(1);
  });

  it("passes a request on in origin form, without what was meant for itself", async () => {
    const job = openJob();
    await ask(`${get("http://a.example.com/?q=1")}\r\nProxy-Connection: keep-alive\r\nX-Own: 1`, job);
    expect(origin.requests[0]?.raw.split("\r\n")).toEqual([
      "GET /?q=1 HTTP/1.1",
      "X-Own: 1",
      "Host: a.example.com",
      "Connection: close",
    ]);
  });

  it.each([
    "http://127.0.0.1/",
    "http://[::1]/",
    "http://169.254.169.254/",
    "http://localhost/",
    "http://a.example.com:25/",
    "http://inside.example.com/",
    "http://mixed.example.com/",
    "http://metadata.google.internal/",
    "http://10.1/",
  ])("W6 refuses %s, as a request and as a tunnel, without a reason and without dialling", async (url) => {
    const job = openJob();
    const { hostname, port } = new URL(url);
    expect(await ask(`GET ${url} HTTP/1.1\r\nHost: x`, job)).toMatch(
      /^HTTP\/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n(?:Date: [^\r]+\r\n)?\r\n$/,
    );
    expect(await ask(`CONNECT ${hostname}:${port || "80"} HTTP/1.1`, job)).toBe(
      "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    expect(dialled).toEqual([]);
  });

  it("refuses what is neither a request for an http URL nor a tunnel", async () => {
    const job = openJob();
    for (const target of ["/", "file:///etc/passwd", "https://a.example.com/", "ftp://a.example.com/"]) {
      expect(await ask(`GET ${target} HTTP/1.1\r\nHost: a.example.com`, job)).toMatch(/^HTTP\/1.1 403 /);
    }
    expect(dialled).toEqual([]);
  });

  it("W7 reaches a listed development target, and only at its port", async () => {
    const listed = await open([`127.0.0.1:${origin.port}`]);
    const job = openJob(1_000_000, listed);
    expect(await ask(get(`http://127.0.0.1:${origin.port}/`), job, { at: listed })).toMatch(/^HTTP\/1.1 200 /);
    expect(await ask(get(`http://127.0.0.1:${origin.port + 1}/`), job, { at: listed })).toMatch(/^HTTP\/1.1 403 /);
    await listed.close();
  });

  it("W9 ends a job's connections when its bytes are used up, both ways counted", async () => {
    origin.on("/large", page("x".repeat(2_000_000)));
    const job = openJob(200_000);
    let exceeded = 0;
    job.onExceeded(() => (exceeded += 1));
    expect((await ask(get("http://a.example.com/large"), job)).length).toBeLessThan(600_000);
    expect([exceeded, job.isExceeded]).toEqual([1, true]);
    expect(job.bytes()).toBeLessThanOrEqual(200_000 + 65_536);
    expect(await ask(get("http://a.example.com/"), job)).toMatch(/^HTTP\/1.1 403 /);
    const sending = openJob(200_000);
    await ask("CONNECT a.example.com:443 HTTP/1.1", sending, { tail: "x".repeat(3_000_000) });
    expect(sending.isExceeded).toBe(true);
  });

  it("W9 gives a job at most 64 connections at once", async () => {
    origin.on("/hold", async (reply) => {
      await reply.closed;
    });
    const patient = await openForwardProxy({
      resolver,
      policy: {},
      limits: DEFAULT_EGRESS_LIMITS,
      dial: createDirectDialer({ dial: () => ({ host: "127.0.0.1", port: origin.port }) }),
    });
    const job = openJob(1_000_000, patient);
    const held = Array.from({ length: 64 }, () => ask(get("http://a.example.com/hold"), job, { at: patient }));
    await origin.request(64);
    expect(await ask(get("http://a.example.com/"), job, { at: patient })).toMatch(/^HTTP\/1.1 403 /);
    job.close();
    await Promise.all(held);
    await origin.allClosed();
    await patient.close();
  });

  it("W9 ends what is silent, endless or no HTTP, and says nothing about it", async () => {
    origin.on("/silent", async (reply) => {
      await reply.closed;
    });
    origin.on("/garbage", (reply) => reply.write("garbage\r\n\r\n"));
    origin.on("/heads", (reply) =>
      reply.write(`HTTP/1.1 200 OK\r\n${"A: b\r\n".repeat(201)}Content-Length: 0\r\n\r\n`),
    );
    origin.on("/head", (reply) => reply.write(`HTTP/1.1 200 OK\r\nA: ${"b".repeat(20_000)}\r\n\r\n`));
    origin.on("/interim", (reply) => reply.write("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(21)));
    origin.on("/switch", (reply) =>
      reply.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"),
    );
    for (const [path, status, kind] of [
      ["/silent", 504, "HEADERS_TIMEOUT"],
      ["/garbage", 502, "HTTP_PROTOCOL"],
      ["/heads", 502, "HEADERS_TOO_LARGE"],
      ["/head", 502, "HEADERS_TOO_LARGE"],
      ["/interim", 502, "HTTP_PROTOCOL"],
      ["/switch", 502, "HTTP_PROTOCOL"],
    ] as const) {
      const job = openJob();
      job.watch({ name: "a.example.com", host: "a.example.com", port: 80 } as never);
      expect(await ask(get(`http://a.example.com${path}`), job)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect({ path, ...job.trouble() }).toMatchObject({ path, kind });
    }
    await origin.allClosed();
  });

  it("W9 closes a tunnel whose target says nothing within the connect timeout", async () => {
    const server = createServer(() => {}).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const silent = await openForwardProxy({
      resolver,
      policy: {},
      limits,
      dial: createDirectDialer({ dial: () => ({ host: "127.0.0.1", port }) }),
    });
    const job = openJob(1_000_000, silent);
    expect(await ask("CONNECT a.example.com:443 HTTP/1.1", job, { tail: "hello", at: silent })).toBe(
      "HTTP/1.1 200 Connection Established\r\n\r\n",
    );
    await silent.close();
    server.close();
  });

  it("cuts for the browser what the target cut", async () => {
    origin.on("/cut", (reply) => reply.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"));
    origin.on("/cut-chunk", (reply) =>
      reply.end("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n"),
    );
    origin.on("/close", (reply) => reply.end("HTTP/1.1 200 OK\r\n\r\nwhole"));
    const job = openJob();
    expect(await ask(get("http://a.example.com/cut"), job)).toMatch(/Content-Length: 100.*short$/s);
    expect(await ask(get("http://a.example.com/cut-chunk"), job)).not.toMatch(/\r\n0\r\n/);
    expect(await ask(get("http://a.example.com/close"), job)).toMatch(/^(?!.*chunked).*whole$/s);
  });
});
