import { once } from "node:events";
import { connect } from "node:net";
import { bytes, createGate, page, redirect, stall, startOrigin } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { ADMIT_ALL, DEFAULT_EGRESS_LIMITS } from "../src/index.ts";
import { Connection } from "../src/transport/connection.ts";
import { exchange } from "../src/transport/exchange.ts";
import { createStop } from "../src/transport/stop.ts";
import { createRig, createStubResolver, PUBLIC_ADDRESS, toRequest } from "./rig.ts";

const URL_A = "http://origin.example.com/a";
const OK = "HTTP/1.1 200 OK\r\n";

/** Lets what the sockets already have be read: a few turns of the loop, no time. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
}

describe("pooled connections", () => {
  it("W6 callers never share a connection", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    await using rig = createRig(origin);
    await rig.get(URL_A, { callerId: "caller-a" });
    await turns();
    await rig.get(URL_A, { callerId: "caller-b" });
    await turns();
    await rig.get(URL_A, { callerId: "caller-a" });
    expect(origin.requests.map(({ connection }) => connection)).toEqual([1, 2, 1]);
  });

  it("a redirect within a host goes over the connection that it came by", async () => {
    await using origin = await startOrigin({ paths: { "/a": redirect("/b"), "/b": redirect("/c"), "/c": page("c") } });
    await using rig = createRig(origin);
    expect((await rig.get(URL_A)).outcome.ok).toBe(true);
    expect(origin.requests.map(({ connection }) => connection)).toEqual([1, 1, 1]);
  });

  it("W6 hosts and ports never share a connection, though they have one address", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    await using rig = createRig(origin);
    for (const host of ["origin.example.com", "other.example.com", "origin.example.com:8080"]) {
      await rig.get(`http://${host}/a`);
      await turns();
    }
    expect(origin.connections()).toBe(3);
  });

  it("W6 a name that leads elsewhere now is dialled anew, though a connection to its old address rests", async () => {
    const answers: Record<string, string[]> = { "origin.example.com": ["93.184.216.34"] };
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    await using rig = createRig(origin, { resolver: createStubResolver(answers) });
    await rig.get(URL_A);
    await turns();
    answers["origin.example.com"] = ["93.184.216.35"];
    await rig.get(URL_A);
    expect(rig.dialled).toEqual(["93.184.216.34", "93.184.216.35"]);
    expect(origin.connections()).toBe(2);
  });

  it("W6 a name that leads inside now is refused, though a connection to its old address rests", async () => {
    const answers: Record<string, string[]> = { "origin.example.com": ["93.184.216.34"] };
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    await using rig = createRig(origin, { resolver: createStubResolver(answers) });
    await rig.get(URL_A);
    await turns();
    answers["origin.example.com"] = ["10.0.0.5"];
    const { outcome } = await rig.get(URL_A);
    expect(outcome).toMatchObject({ ok: false, sent: false, failure: { kind: "LOCAL", code: "TARGET_FORBIDDEN" } });
    expect(origin.requests.length).toBe(1);
  });

  // A hostile origin sends a second response while the connection rests; read as the next request's answer it would put
  // its words into another job's mouth.
  it("W6 a response planted on a resting connection is never read as an answer", async () => {
    const planted = createGate();
    await using origin = await startOrigin({
      paths: {
        "/a": async (reply) => {
          await reply.write(`${OK}Content-Length: 5\r\n\r\nfirst`);
          if (reply.request.connection > 1) return;
          await planted.opened;
          await reply.write(`${OK}Content-Length: 6\r\n\r\npoison`);
        },
      },
    });
    await using rig = createRig(origin);
    await rig.get(URL_A);
    await turns();
    expect(rig.transport.sockets()).toBe(1);
    planted.open();
    await origin.allClosed();
    const { outcome, body } = await rig.get(URL_A);
    expect(body.toString()).toBe("first");
    expect(outcome.ok).toBe(true);
    expect(origin.requests.map(({ connection }) => connection)).toEqual([1, 2]);
  });

  it("W6 a planted response that was not read yet when the connection is taken again is never an answer", async () => {
    await using origin = await startOrigin({
      paths: { "/a": bytes(`${OK}Content-Length: 5\r\n\r\nfirst`), "/b": page("second") },
    });
    await using rig = createRig(origin);
    await rig.get(URL_A);
    await turns();
    const [socket] = origin.sockets();
    // Both happen in one turn of the loop: the bytes are on their way while the next request is being made.
    socket?.write(`${OK}Content-Length: 6\r\n\r\npoison`);
    const { body } = await rig.get("http://origin.example.com/b");
    expect(body.toString()).toBe("second");
  });

  it.each([
    ["bytes behind the declared length", `${OK}Content-Length: 5\r\n\r\nfirst and more`],
    ["a second response", `${OK}Content-Length: 5\r\n\r\nfirst${OK}Content-Length: 6\r\n\r\npoison`],
    ["an interim response", `HTTP/1.1 103 Early Hints\r\n\r\n${OK}Content-Length: 5\r\n\r\nfirst`],
    ["an announced close", `${OK}Connection: close\r\nContent-Length: 5\r\n\r\nfirst`],
    ["an error", `${OK}Content-Length: 5\r\nContent-Length: 6\r\n\r\nfirst`],
  ])("W6 a connection is not used again after %s", async (_what, response) => {
    await using origin = await startOrigin({ paths: { "/a": bytes(response) } });
    await using rig = createRig(origin);
    await rig.get(URL_A);
    await turns();
    await rig.get(URL_A);
    expect(origin.requests.map(({ connection }) => connection)).toEqual([1, 2]);
  });

  it("W6 a resting connection is closed after its idle time", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    await using rig = createRig(origin, { limits: { idleSocketMs: 50 } });
    await rig.get(URL_A);
    await origin.allClosed();
    expect(origin.connections()).toBe(1);
  });

  it("serves from a new connection when the server closed the resting one", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    await using rig = createRig(origin);
    await rig.get(URL_A);
    await turns();
    for (const socket of origin.sockets()) socket.destroy();
    const { outcome } = await rig.get(URL_A);
    expect(outcome.ok).toBe(true);
    expect(origin.connections()).toBe(2);
  });

  it("keeps no more resting connections than the limit, the newest ones", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    await using rig = createRig(origin, { limits: { idleSocketsMax: 2 } });
    for (const host of ["one", "two", "three"]) {
      await rig.get(`http://${host}.example.com/a`);
      await turns();
    }
    expect(rig.transport.sockets()).toBe(2);
    await rig.get("http://three.example.com/a");
    await rig.get("http://one.example.com/a");
    expect(origin.requests.map(({ connection }) => connection)).toEqual([1, 2, 3, 3, 4]);
  });

  it("W6 a socket that reached another address than the pinned one is closed before a byte is sent", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    // The kernel connects 0.0.0.0 to 127.0.0.1: asked for one address, reached another.
    await using rig = createRig(origin, { dial: () => ({ host: "0.0.0.0", port: origin.port }) });
    const { outcome } = await rig.get(URL_A);
    expect(outcome).toMatchObject({ ok: false, sent: false, failure: { code: "CONNECT_FAILURE" } });
    expect(origin.requests).toEqual([]);
  });

  it("W6 an address literal is dialled as it was vetted", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    const resolver = createStubResolver();
    await using rig = createRig(origin, { resolver });
    await rig.get(`http://${PUBLIC_ADDRESS}/a`);
    expect(rig.dialled).toEqual([PUBLIC_ADDRESS]);
    expect(resolver.asked).toEqual([]);
  });
});

describe("a reset connection", () => {
  // undici takes a reset behind an announced close for the end of the body, and a cut page would be stored as a whole one.
  it.each(["while the sink is ready", "while the sink takes its time"])(
    "W9 a reset inside a body that ends with its connection is a truncated body, %s",
    async (when) => {
      await using origin = await startOrigin({ paths: { "/a": stall(`${OK}Connection: close\r\n\r\nhello`) } });
      const socket = connect(origin.port, "127.0.0.1");
      await once(socket, "connect");
      const connection = new Connection("key", socket, DEFAULT_EGRESS_LIMITS);
      const stop = createStop({ signal: new AbortController().signal, deadline: Infinity, limitMs: 10_000, nowMs: 0 });
      const started = createGate();
      const slow = new Promise<void>(() => {});
      const result = exchange({
        connection,
        request: { method: "GET", target: "/a", headers: ["host", "origin.example.com"] },
        limits: DEFAULT_EGRESS_LIMITS,
        stop,
        progress: { sent: false, head: null, wireBytes: 0 },
        onHead: () => ({
          do: "READ",
          stage: {
            write() {
              started.open();
              return when.includes("takes") ? slow : undefined;
            },
            end() {},
            abandon() {},
          },
          wireBytesMax: 1_000,
          ceilingBytes: 1_000_000,
        }),
      });
      await started.opened;
      // What Node does when it reads a reset.
      socket.destroy(Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }));
      expect(await result).toEqual({ kind: "FAILED", failure: "BODY_TRUNCATED", nativeCode: "ECONNRESET" });
      stop.end();
    },
  );
});

describe("W10 a transport's own pool", () => {
  it("W10 two transports share no connection", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    await using one = createRig(origin);
    await using two = createRig(origin);
    await one.get(URL_A);
    await turns();
    await two.get(URL_A);
    expect(origin.connections()).toBe(2);
  });

  it("W10 closing lets a running fetch finish and closes every connection", async () => {
    const gate = createGate();
    await using origin = await startOrigin({
      paths: {
        "/a": page("a"),
        "/slow": async (reply) => {
          await gate.opened;
          await reply.send({ body: "slow" });
        },
      },
    });
    await using rig = createRig(origin);
    await rig.get(URL_A);
    const running = rig.get("http://origin.example.com/slow");
    await origin.request(2);
    const closing = rig.transport.close(performance.now() + 10_000);
    gate.open();
    expect((await running).outcome.ok).toBe(true);
    await closing;
    expect(rig.transport.sockets()).toBe(0);
    await origin.allClosed();
  });

  it("W10 closing aborts what still runs at its deadline, and nothing starts afterwards", async () => {
    await using origin = await startOrigin({ paths: { "/slow": (reply) => reply.closed } });
    await using rig = createRig(origin, { limits: { responseTimeoutMs: 10_000 } });
    const running = rig.get("http://origin.example.com/slow");
    await origin.request(1);
    await rig.transport.close(performance.now() + 20);
    expect((await running).outcome).toMatchObject({ ok: false, aborted: true, sent: true });
    expect(rig.transport.sockets()).toBe(0);
    const late = await rig.transport.fetch(
      toRequest(URL_A),
      { write() {} },
      { admit: ADMIT_ALL, signal: new AbortController().signal },
    );
    expect(late).toMatchObject({ ok: false, aborted: true, sent: false });
    expect(origin.connections()).toBe(1);
  });
});
