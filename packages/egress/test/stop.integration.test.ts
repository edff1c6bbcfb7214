import { createGate, type OriginBehaviour, stall, startOrigin } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import type { FetchRequest } from "../src/index.ts";
import { openBlackHole } from "./black-hole.ts";
import { createRig, type Rig } from "./rig.ts";

/** A fetch that is in one phase and would stay in it for long. */
type Phase = {
  readonly rig: Rig;
  readonly url: string;
  /** Resolves once the fetch is known to be in its phase. */
  readonly reached: Promise<unknown>;
  /** Resolves when the other side saw every socket closed; absent where there is none. */
  readonly closed?: () => Promise<void>;
  readonly sent: boolean;
  readonly limitCode: string;
};
type Use = (phase: Phase) => Promise<void>;

const LONG = { connectTimeoutMs: 20_000, responseTimeoutMs: 20_000, bodyIdleTimeoutMs: 20_000 };
const OK = "HTTP/1.1 200 OK\r\n";
const HTTP = "http://origin.example.com/a";

async function inDns(use: Use): Promise<void> {
  const asked = createGate();
  await using origin = await startOrigin();
  const resolver = {
    resolve(): Promise<never> {
      asked.open();
      return new Promise(() => {});
    },
  };
  await using rig = createRig(origin, { limits: LONG, resolver });
  await use({ rig, url: HTTP, reached: asked.opened, sent: false, limitCode: "RESPONSE_TIMEOUT" });
}

async function inTcp(use: Use): Promise<void> {
  await using hole = await openBlackHole();
  const { port } = hole;
  const dialled = createGate();
  await using origin = await startOrigin();
  await using rig = createRig(origin, {
    limits: LONG,
    dial() {
      dialled.open();
      return { host: "127.0.0.1", port };
    },
  });
  await use({ rig, url: HTTP, reached: dialled.opened, sent: false, limitCode: "RESPONSE_TIMEOUT" });
}

async function inTls(use: Use): Promise<void> {
  const hello = createGate();
  await using origin = await startOrigin({
    onConnection(socket) {
      socket.once("data", hello.open);
      return "TAKEN";
    },
  });
  await using rig = createRig(origin, { limits: LONG });
  const closed = (): Promise<void> => origin.allClosed();
  await use({
    rig,
    url: "https://origin.example.com/a",
    reached: hello.opened,
    closed,
    sent: false,
    limitCode: "RESPONSE_TIMEOUT",
  });
}

function inAnswer(behaviour: OriginBehaviour, limitCode: string): (use: Use) => Promise<void> {
  return async (use) => {
    const written = createGate();
    await using origin = await startOrigin({
      paths: {
        "/a": async (reply) => {
          const answering = behaviour(reply);
          written.open();
          await answering;
        },
      },
    });
    await using rig = createRig(origin, { limits: LONG });
    await use({ rig, url: HTTP, reached: written.opened, closed: () => origin.allClosed(), sent: true, limitCode });
  };
}

const endlessInterim: OriginBehaviour = async (reply) => {
  while (!reply.isClosed()) {
    await reply.write("HTTP/1.1 103 Early Hints\r\n\r\n");
    await Promise.race([new Promise((resolve) => setTimeout(resolve, 200)), reply.closed]);
  }
};

const PHASES: readonly (readonly [string, (use: Use) => Promise<void>])[] = [
  ["DNS", inDns],
  ["TCP", inTcp],
  ["TLS", inTls],
  ["waiting for the head", inAnswer((reply) => reply.closed, "RESPONSE_TIMEOUT")],
  ["inside the head", inAnswer(stall(`${OK}X-Slow: `), "RESPONSE_TIMEOUT")],
  ["interim responses", inAnswer(endlessInterim, "RESPONSE_TIMEOUT")],
];

/** The body's phases are known by the sink's first chunk. */
const BODIES: readonly (readonly [string, OriginBehaviour])[] = [
  ["body", stall(`${OK}Content-Length: 100\r\n\r\nhello`)],
  ["chunked body", stall(`${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`)],
];

async function run(phase: Phase, overrides: Partial<FetchRequest>, controller: AbortController) {
  const fetching = phase.rig.get(phase.url, { attemptLimitMs: 20_000, ...overrides }, controller.signal);
  await phase.reached;
  return { fetching };
}

describe("ending an attempt", () => {
  it.each(PHASES)("J6 an abort in %s returns at once and closes the socket", async (_name, enter) => {
    await enter(async (phase) => {
      const controller = new AbortController();
      const { fetching } = await run(phase, {}, controller);
      const abortedAt = performance.now();
      controller.abort(new Error("cancelled"));
      const { outcome } = await fetching;
      // The attempt's own limit is 20 s away.
      expect(performance.now() - abortedAt).toBeLessThan(5_000);
      expect(outcome).toMatchObject({ ok: false, aborted: true, failure: null, sent: phase.sent });
      expect(phase.rig.transport.sockets()).toBe(0);
      await phase.closed?.();
    });
  });

  it.each(PHASES)("J5 the job's deadline in %s ends the attempt as DEADLINE_EXCEEDED", async (_name, enter) => {
    await enter(async (phase) => {
      const { fetching } = await run(phase, { deadline: performance.now() + 700 }, new AbortController());
      const { outcome } = await fetching;
      expect(outcome).toMatchObject({
        ok: false,
        aborted: false,
        failure: { kind: "LOCAL", code: "DEADLINE_EXCEEDED" },
        sent: phase.sent,
      });
      expect(outcome.timings.totalMs).toBeLessThan(5_000);
      expect(phase.rig.transport.sockets()).toBe(0);
      await phase.closed?.();
    });
  });

  it.each(PHASES)("W9 the attempt's hard limit in %s is the target's timeout", async (_name, enter) => {
    await enter(async (phase) => {
      const { fetching } = await run(phase, { attemptLimitMs: 700 }, new AbortController());
      const { outcome } = await fetching;
      expect(outcome).toMatchObject({
        ok: false,
        aborted: false,
        failure: { kind: "UPSTREAM", code: phase.limitCode, disposition: "RETRY" },
        sent: phase.sent,
      });
      expect(phase.rig.transport.sockets()).toBe(0);
      await phase.closed?.();
    });
  });

  it.each(BODIES)(
    "J6 an abort inside a %s closes the socket; a limit there is BODY_TIMEOUT",
    async (_name, behaviour) => {
      for (const how of ["ABORT", "LIMIT", "DEADLINE"] as const) {
        await using origin = await startOrigin({ paths: { "/a": behaviour } });
        await using rig = createRig(origin, { limits: LONG });
        const controller = new AbortController();
        const started = createGate();
        const outcome = rig.fetchInto(HTTP, { write: () => started.open() }, controller.signal, {
          attemptLimitMs: how === "LIMIT" ? 300 : 20_000,
          deadline: performance.now() + (how === "DEADLINE" ? 300 : 20_000),
        });
        await started.opened;
        if (how === "ABORT") controller.abort();
        const codes = { ABORT: null, LIMIT: "BODY_TIMEOUT", DEADLINE: "DEADLINE_EXCEEDED" };
        const ended = await outcome;
        expect(ended).toMatchObject({ ok: false, httpStatus: 200, bodyBytes: 5, aborted: how === "ABORT" });
        expect(ended.ok ? null : (ended.failure?.code ?? null)).toBe(codes[how]);
        expect(rig.transport.sockets()).toBe(0);
        await origin.allClosed();
      }
    },
  );

  it("J6 an abort while the sink is slow closes the socket", async () => {
    await using origin = await startOrigin({ paths: { "/a": stall(`${OK}Content-Length: 100\r\n\r\nhello`) } });
    await using rig = createRig(origin, { limits: LONG });
    const controller = new AbortController();
    const started = createGate();
    const never = new Promise<void>(() => {});
    const sink = {
      write() {
        started.open();
        return never;
      },
    };
    const outcome = rig.fetchInto(HTTP, sink, controller.signal, {});
    await started.opened;
    controller.abort();
    expect(await outcome).toMatchObject({ ok: false, aborted: true });
    await origin.allClosed();
  });

  it("a signal that was aborted before the fetch sends nothing", async () => {
    await using origin = await startOrigin();
    await using rig = createRig(origin);
    const { outcome } = await rig.get(HTTP, {}, AbortSignal.abort());
    expect(outcome).toMatchObject({ ok: false, aborted: true, sent: false });
    expect(origin.connections()).toBe(0);
  });

  it("J5 nothing is sent after the deadline", async () => {
    await using origin = await startOrigin();
    await using rig = createRig(origin);
    const { outcome } = await rig.get(HTTP, { deadline: performance.now() - 1 });
    expect(outcome).toMatchObject({ ok: false, sent: false, failure: { code: "DEADLINE_EXCEEDED" } });
    expect(origin.connections()).toBe(0);
  });
});
