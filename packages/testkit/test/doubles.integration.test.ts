import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { createTestSignals, startReceiver, startTcpProxy, testRedis } from "../src/index.ts";

describe("createTestSignals", () => {
  it("tells of an arrival whether it came before or after the question", async () => {
    const signals = createTestSignals();
    await signals.reach("claimed", { id: "a" });
    expect(await signals.reached("claimed")).toEqual({ id: "a" });
    const later = signals.reached("claimed", (detail) => (detail as { id: string }).id === "b");
    await signals.reach("claimed", { id: "b" });
    expect(await later).toEqual({ id: "b" });
    await signals.reachedTimes("claimed", 2);
    expect(signals.points).toEqual(["claimed", "claimed"]);
  });

  it("stops callers at a held point until it is released, and no others", async () => {
    const signals = createTestSignals();
    const order: string[] = [];
    const hold = signals.hold("settle", (detail) => detail === 1);
    const held = signals.reach("settle", 1).then(() => order.push("held"));
    expect(await hold.held).toBe(1);
    await signals.reach("settle", 2);
    order.push("passed");
    hold.release();
    await held;
    expect(order).toEqual(["passed", "held"]);
    await signals.reach("settle", 1);
  });
});

describe("startReceiver", () => {
  it("keeps the exact bytes and the order of headers, and answers by script", async () => {
    await using receiver = await startReceiver({ answers: { "/hook": [503, { status: 200, body: "ok" }] } });
    const body = Buffer.from([0, 255, 10, 13]);
    const send = () => post(`${receiver.url}/hook?q=1`, body, ["X-B", "1", "x-a", "2", "X-B", "3"]);
    expect(await send()).toBe(503);
    expect(await send()).toBe(200);
    expect(await send()).toBe(200);
    const [first] = await receiver.waitForCount(3);
    expect(first!.body).toEqual(body);
    expect(first!.path).toBe("/hook?q=1");
    expect(first!.headers.filter(([name]) => /^x-/i.test(name))).toEqual([
      ["X-B", "1"],
      ["x-a", "2"],
      ["X-B", "3"],
    ]);
    expect(first!.header("X-A")).toBe("2");
  });

  it("delays an answer until it is let go, resets and hangs", async () => {
    await using receiver = await startReceiver();
    let open: () => void = () => undefined;
    const until = new Promise<void>((resolve) => (open = resolve));
    receiver.script("/", [{ status: 200, until }, "RESET", "HANG"]);
    let isAnswered = false;
    const first = post(receiver.url, Buffer.of(), []).then(() => (isAnswered = true));
    await receiver.waitForCount(1);
    expect(isAnswered).toBe(false);
    open();
    await first;
    await expect(post(receiver.url, Buffer.of(), [])).rejects.toMatchObject({ code: "ECONNRESET" });
    const hung = post(receiver.url, Buffer.of(), []).catch((error: unknown) => error);
    await receiver.waitForCount(3);
    await receiver[Symbol.asyncDispose]();
    expect(await hung).toMatchObject({ code: "ECONNRESET" });
  });

  it("says what came when what was waited for did not", async () => {
    await using receiver = await startReceiver();
    await post(`${receiver.url}/other`, Buffer.of(), []);
    await expect(receiver.waitFor((request) => request.path === "/hook", 20)).rejects.toThrow("POST /other");
  });
});

describe("startTcpProxy", () => {
  it("cuts, refuses, swallows, delays and recovers", async () => {
    const { url, prefix } = await testRedis();
    await using proxy = await startTcpProxy({ target: url });
    const redis = new Redis(proxy.through(url), { retryStrategy: () => 5, maxRetriesPerRequest: null });
    redis.on("error", () => undefined);
    const direct = new Redis(url);
    try {
      expect(await redis.ping()).toBe("PONG");
      expect(proxy.connections).toBe(1);

      proxy.cut();
      await new Promise<void>((resolve) => redis.once("ready", () => resolve()));
      expect(await redis.ping()).toBe("PONG");

      await proxy.refuse();
      await expect(dial(proxy.port)).rejects.toMatchObject({ code: "ECONNREFUSED" });
      await proxy.restore();
      expect(await redis.ping()).toBe("PONG");

      proxy.blackHole("ANSWERS");
      const answered = redis.incr(`${prefix}n`);
      await expect.poll(() => direct.get(`${prefix}n`), { interval: 5 }).toBe("1");
      await proxy.restore();
      expect(await answered).toBe(1);

      proxy.blackHole();
      const swallowed = redis.incr(`${prefix}n`);
      await direct.ping();
      expect(await direct.get(`${prefix}n`)).toBe("1");
      await proxy.restore();
      expect(await swallowed).toBe(2);

      proxy.delay(60);
      const from = performance.now();
      await redis.ping();
      expect(performance.now() - from).toBeGreaterThanOrEqual(118);
    } finally {
      await direct.del(`${prefix}n`);
      redis.disconnect();
      direct.disconnect();
    }
  });
});

async function dial(port: number): Promise<void> {
  const socket = connect({ port, host: "127.0.0.1" });
  try {
    await once(socket, "connect");
  } finally {
    socket.destroy();
  }
}

function post(url: string, body: Buffer, headers: string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const { host } = new URL(url);
    const sent = httpRequest(url, {
      method: "POST",
      agent: false,
      headers: ["Host", host, "Content-Length", String(body.length), ...headers],
    });
    sent.once("error", reject);
    sent.once("response", (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode ?? 0));
    });
    sent.end(body);
  });
}
