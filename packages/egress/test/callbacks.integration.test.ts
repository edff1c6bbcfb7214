import {
  bytes,
  type Origin,
  page,
  readTestAuthority,
  readTlsFixture,
  redirect,
  stall,
  startOrigin,
} from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import {
  type CallbackOutcome,
  type CallbackPolicy,
  type CallbackRequest,
  createCallbackTransport,
  parseAllowedTargets,
} from "../src/index.ts";
import { createStubResolver, PUBLIC_ADDRESS } from "./rig.ts";

type Rig = AsyncDisposable & {
  readonly dialled: string[];
  send(overrides?: Partial<CallbackRequest>, signal?: AbortSignal): Promise<CallbackOutcome>;
  sockets(): number;
};

function allowed(...list: string[]): CallbackPolicy["allowedCallbacks"] {
  const parsed = parseAllowedTargets(list);
  if (!parsed.ok) throw new Error("bad list");
  return parsed.targets;
}

/** Sends to `http://receiver.lan:8080`, which is listed and leads to a private address, unless told otherwise. */
function createRig(
  origin: Origin,
  options: { readonly policy?: Partial<CallbackPolicy>; readonly answers?: Record<string, readonly string[]> } = {},
): Rig {
  const dialled: string[] = [];
  const transport = createCallbackTransport({
    resolver: createStubResolver({ "receiver.lan": ["10.1.2.3"], ...options.answers }),
    policy: { allowedCallbacks: allowed("receiver.lan:8080"), environment: "production", ...options.policy },
    overrides: {
      dial(address) {
        dialled.push(address);
        return { host: "127.0.0.1", port: origin.port };
      },
      authorities: [readTestAuthority()],
    },
  });
  const request: CallbackRequest = {
    url: "http://receiver.lan:8080/hook?x=1",
    body: '{"id":"é"}',
    headers: { "content-type": "application/json", "webhook-id": "e1", host: "evil.example.com" },
    timeoutMs: 5_000,
    callerId: "caller-a",
  };
  return {
    dialled,
    send: (overrides = {}, signal = new AbortController().signal) =>
      transport.send({ ...request, ...overrides }, { signal }),
    sockets: () => transport.sockets(),
    async [Symbol.asyncDispose]() {
      await transport.close(performance.now());
    },
  };
}

describe("sending a callback", () => {
  it("posts the body as it is, with the delivery's headers and our Host", async () => {
    await using origin = await startOrigin({ paths: { "/hook": page("thanks") } });
    await using rig = createRig(origin);
    const outcome = await rig.send();
    expect(outcome).toMatchObject({ ok: true, httpStatus: 200, retryAfterMs: null, body: "thanks" });
    expect(origin.requests[0]).toMatchObject({
      method: "POST",
      target: "/hook?x=1",
      headers: {
        host: "receiver.lan:8080",
        "content-length": "11",
        "content-type": "application/json",
        "webhook-id": "e1",
      },
    });
    expect(origin.requests[0]?.body.toString()).toBe('{"id":"é"}');
    expect(rig.dialled).toEqual(["10.1.2.3"]);
  });

  it("W6 verifies the receiver's certificate and name", async () => {
    await using good = await startOrigin({ paths: { "/hook": page("") }, tls: readTlsFixture("origin") });
    await using other = await startOrigin({ paths: { "/hook": page("") }, tls: readTlsFixture("other") });
    for (const [origin, ok] of [
      [good, true],
      [other, false],
    ] as const) {
      await using rig = createRig(origin);
      expect((await rig.send({ url: "https://origin.example.com/hook" })).ok).toBe(ok);
    }
    expect(other.requests).toEqual([]);
  });

  it.each([
    ["plain http to a host that is not listed", "http://origin.example.com/hook", {}],
    ["another port of a listed host", "http://receiver.lan:8081/hook", {}],
    ["a literal of a private address", "https://10.1.2.3/hook", {}],
    ["a name that leads inside", "https://origin.example.com/hook", { "origin.example.com": ["10.1.2.3"] }],
    ["a listed name that leads to loopback", "http://receiver.lan:8080/hook", { "receiver.lan": ["127.0.0.1"] }],
    ["a listed name that leads to metadata", "http://receiver.lan:8080/hook", { "receiver.lan": ["169.254.169.254"] }],
  ])("W7 refuses %s", async (_what, url, answers) => {
    await using origin = await startOrigin();
    await using rig = createRig(origin, { answers });
    expect(await rig.send({ url })).toMatchObject({
      ok: false,
      sent: false,
      failure: { kind: "LOCAL", code: "TARGET_FORBIDDEN" },
    });
    expect(origin.connections()).toBe(0);
  });

  it("W7 a listed loopback receiver is reached in development only, metadata never", async () => {
    await using origin = await startOrigin({ paths: { "/hook": page("") } });
    const list = allowed(`127.0.0.1:${origin.port}`, "169.254.169.254:80");
    for (const [environment, ok] of [
      ["development", true],
      ["test", true],
      ["staging", false],
      ["production", false],
    ] as const) {
      await using rig = createRig(origin, { policy: { allowedCallbacks: list, environment } });
      expect((await rig.send({ url: `http://127.0.0.1:${origin.port}/hook` })).ok).toBe(ok);
      expect((await rig.send({ url: "http://169.254.169.254/hook" })).ok).toBe(false);
    }
  });

  it("W6 vets the name at each send: one that leads inside by now is refused", async () => {
    await using origin = await startOrigin({ paths: { "/hook": page("") }, tls: readTlsFixture("origin") });
    const answers: Record<string, readonly string[]> = { "origin.example.com": [PUBLIC_ADDRESS] };
    const resolver = createStubResolver(answers);
    const transport = createCallbackTransport({
      resolver,
      policy: { allowedCallbacks: allowed(), environment: "production" },
      overrides: { dial: () => ({ host: "127.0.0.1", port: origin.port }), authorities: [readTestAuthority()] },
    });
    const request = {
      url: "https://origin.example.com/hook",
      body: "{}",
      headers: {},
      timeoutMs: 5_000,
      callerId: "a",
    };
    const { signal } = new AbortController();
    expect((await transport.send(request, { signal })).ok).toBe(true);
    answers["origin.example.com"] = ["192.168.1.1"];
    expect(await transport.send(request, { signal })).toMatchObject({
      ok: false,
      failure: { code: "TARGET_FORBIDDEN" },
    });
    expect(origin.requests.length).toBe(1);
    await transport.close(performance.now());
  });

  it("follows no redirect: a 302 is an answer", async () => {
    await using origin = await startOrigin({ paths: { "/hook": redirect("/elsewhere"), "/elsewhere": page("") } });
    await using rig = createRig(origin);
    expect(await rig.send()).toMatchObject({ ok: true, httpStatus: 302 });
    expect(origin.requests.length).toBe(1);
  });

  it.each([
    ["7", 7_000],
    ["soon", null],
  ])("F3 reads Retry-After %s as %s ms", async (value, expected) => {
    await using origin = await startOrigin({
      paths: { "/hook": (reply) => reply.send({ status: 503, headers: { "Retry-After": value }, body: "busy" }) },
    });
    await using rig = createRig(origin);
    expect(await rig.send()).toMatchObject({ ok: true, httpStatus: 503, retryAfterMs: expected });
  });

  it("W9 keeps 4 KiB of an answer and reads at most 64 KiB of it", async () => {
    let written = 0;
    await using origin = await startOrigin({
      paths: {
        "/hook": async (reply) => {
          await reply.write("HTTP/1.1 200 OK\r\n\r\n");
          while (!reply.isClosed()) {
            await reply.write("b".repeat(16_384));
            written += 16_384;
          }
        },
      },
    });
    await using rig = createRig(origin);
    expect(await rig.send()).toMatchObject({ ok: true, httpStatus: 200, body: "b".repeat(4_096) });
    await origin.allClosed();
    expect(written).toBeLessThan(16 * 1024 * 1024);
  });

  it("an answer whose body never ends is an answer", async () => {
    await using origin = await startOrigin({
      paths: { "/hook": stall("HTTP/1.1 204 OK\r\nContent-Length: 9\r\n\r\n") },
    });
    await using stalled = await startOrigin({
      paths: { "/hook": stall("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc") },
    });
    await using one = createRig(origin);
    expect(await one.send()).toMatchObject({ ok: true, httpStatus: 204 });
    await using two = createRig(stalled);
    expect(await two.send({ timeoutMs: 200 })).toMatchObject({ ok: true, httpStatus: 200, body: "abc" });
    await stalled.allClosed();
  });

  it("W9 the timeout covers the whole try", async () => {
    await using origin = await startOrigin({ paths: { "/hook": (reply) => reply.closed } });
    await using rig = createRig(origin);
    const outcome = await rig.send({ timeoutMs: 200 });
    expect(outcome).toMatchObject({
      ok: false,
      sent: true,
      failure: { code: "RESPONSE_TIMEOUT", disposition: "RETRY" },
    });
    expect(outcome.latencyMs).toBeLessThan(1_000);
    await origin.allClosed();
  });

  it("an abort returns at once and closes the socket", async () => {
    await using origin = await startOrigin({ paths: { "/hook": (reply) => reply.closed } });
    await using rig = createRig(origin);
    const controller = new AbortController();
    const sending = rig.send({}, controller.signal);
    await origin.request(1);
    controller.abort();
    expect(await sending).toMatchObject({ ok: false, aborted: true, failure: null, sent: true });
    expect(rig.sockets()).toBe(0);
    await origin.allClosed();
  });

  it("W6 uses a connection again for the same caller and receiver only", async () => {
    await using origin = await startOrigin({ paths: { "/hook": page("") } });
    await using rig = createRig(origin);
    for (const callerId of ["caller-a", "caller-a", "caller-b"]) {
      await rig.send({ callerId });
      for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
    }
    expect(origin.requests.map(({ connection }) => connection)).toEqual([1, 1, 2]);
  });

  it("a malformed answer is a terminal failure of the receiver", async () => {
    await using origin = await startOrigin({ paths: { "/hook": bytes("SSH-2.0\r\n") } });
    await using rig = createRig(origin);
    expect(await rig.send()).toMatchObject({ ok: false, sent: true, failure: { code: "MALFORMED_RESPONSE" } });
  });

  it.each([
    ["101 without Upgrade", "HTTP/1.1 101 X\r\n\r\n"],
    ["101 with Upgrade", "HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"],
    ["099", "HTTP/1.1 099 X\r\n\r\n"],
  ])("W9 a receiver that answers %s fails its own delivery, and nothing else", async (_what, answer) => {
    const uncaught: unknown[] = [];
    const watch = (error: unknown): unknown => uncaught.push(error);
    process.on("uncaughtExceptionMonitor", watch);
    await using origin = await startOrigin({ paths: { "/hook": bytes(answer) } });
    await using rig = createRig(origin);
    expect(await rig.send()).toMatchObject({
      ok: false,
      sent: true,
      failure: { kind: "UPSTREAM", code: "MALFORMED_RESPONSE", disposition: "TERMINAL" },
    });
    await origin.allClosed();
    expect(rig.sockets()).toBe(0);
    process.off("uncaughtExceptionMonitor", watch);
    expect(uncaught).toEqual([]);
  });
});
