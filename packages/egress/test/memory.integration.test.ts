import { brotliCompressSync, gzipSync } from "node:zlib";
import { createGate, startOrigin } from "@keble-scraper/testkit";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createRig } from "./rig.ts";

const MIB = 1024 * 1024;

afterEach(() => {
  vi.useRealTimers();
});

describe("memory", () => {
  it("W9 twenty bombs at once stay small", async () => {
    const zeros = Buffer.alloc(100_000_000);
    const bombs = {
      "/gzip": ["gzip", gzipSync(zeros)],
      "/nested": ["gzip, gzip", gzipSync(gzipSync(zeros))],
      "/br": ["br", brotliCompressSync(zeros, { params: { 1: 4 } })],
    } as const;
    const paths = Object.fromEntries(
      Object.entries(bombs).map(([path, [coding, body]]) => [
        path,
        (reply: { send(answer: object): Promise<void> }) =>
          reply.send({ headers: { "Content-Encoding": coding }, body }),
      ]),
    );
    await using origin = await startOrigin({ paths });
    await using rig = createRig(origin, { limits: { responseTimeoutMs: 20_000, bodyIdleTimeoutMs: 20_000 } });
    const before = process.memoryUsage().rss;
    let highest = before;
    const watch = setInterval(() => {
      highest = Math.max(highest, process.memoryUsage().rss);
    }, 5);
    const sink = { write() {} };
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, index) => {
        const path = Object.keys(bombs)[index % 3] ?? "/gzip";
        return rig.fetchInto(`http://origin.example.com${path}`, sink, new AbortController().signal, {
          attemptLimitMs: 20_000,
        });
      }),
    );
    clearInterval(watch);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ ok: false, failure: { code: "BODY_TOO_LARGE" } });
    expect(highest - before).toBeLessThan(120 * MIB);
  });

  it.each([
    ["without framing", "HTTP/1.1 200 OK\r\n\r\n", ""],
    ["in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "100000\r\n"],
  ])("W9 a sink that takes its time slows the origin down: a body %s", async (_what, head, before) => {
    // Only the clock that silence is timed by: sockets go on as they are.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    let written = 0;
    await using origin = await startOrigin({
      paths: {
        "/other": (reply) => reply.send({ body: Buffer.alloc(64 * MIB) }),
        "/a": async (reply) => {
          await reply.write(head);
          while (!reply.isClosed()) {
            await reply.write(before);
            await reply.write(Buffer.alloc(MIB));
            await reply.write(before === "" ? "" : "\r\n");
            written += MIB;
          }
        },
      },
    });
    await using rig = createRig(origin, { limits: { bodyIdleTimeoutMs: 300 } });
    const gate = createGate();
    const begun = createGate();
    const enough = createGate();
    const controller = new AbortController();
    let taken = 0;
    const sink = {
      async write(chunk: Buffer) {
        taken += chunk.length;
        begun.open();
        if (taken > 20 * MIB) enough.open();
        await gate.opened;
      },
    };
    const fetching = rig.fetchInto("http://origin.example.com/a", sink, controller.signal, {
      maxBodyBytes: 500 * MIB,
      attemptLimitMs: 20_000,
    });
    await begun.opened;
    // While another body of four times as much goes through, this one would have been read, if it were not held.
    const other = { maxBodyBytes: 64 * MIB, attemptLimitMs: 20_000 };
    const { signal } = new AbortController();
    expect(await rig.fetchInto("http://origin.example.com/other", { write() {} }, signal, other)).toMatchObject({
      ok: true,
      response: { bodyBytes: 64 * MIB },
    });
    // Longer than the idle timeout: while we do not read, the silence is ours and ends nothing.
    await vi.advanceTimersByTimeAsync(700);
    expect(written).toBeLessThan(16 * MIB);
    expect(taken).toBeLessThan(MIB);
    gate.open();
    await Promise.race([enough.opened, fetching]);
    controller.abort();
    expect(await fetching).toMatchObject({ ok: false, aborted: true });
    expect(taken).toBeGreaterThan(20 * MIB);
  });

  // undici's parser fails an assertion, outside of any request, when a socket ends or resets while it is paused.
  it.each([["ends"], ["resets"]])(
    "a slow sink gets the whole body of a connection that %s behind it, or the failure",
    async (how) => {
      for (let round = 0; round < 20; round += 1) {
        await using origin = await startOrigin({
          paths: {
            "/a": async (reply) => {
              await reply.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\none,");
              await new Promise(setImmediate);
              await reply.write("two,");
              await new Promise(setImmediate);
              await reply.write("three");
              if (how === "ends") reply.end();
              else reply.reset();
            },
          },
        });
        await using rig = createRig(origin);
        let body = "";
        const sink = {
          async write(chunk: Buffer) {
            for (let turn = 0; turn < round; turn += 1) await new Promise(setImmediate);
            body += chunk.toString();
          },
        };
        const outcome = await rig.fetchInto("http://origin.example.com/a", sink, new AbortController().signal, {});
        // Some kernels deliver what was sent before a reset, and then an end: nothing tells the two apart there.
        if (outcome.ok) expect(body).toBe("one,two,three");
        else expect(outcome).toMatchObject({ failure: { code: "TRUNCATED_BODY", disposition: "RETRY" } });
        if (how === "ends") expect(outcome.ok).toBe(true);
        expect(rig.transport.sockets()).toBe(0);
      }
    },
  );

  it("a sink that fails is a fault, and the socket is closed", async () => {
    await using origin = await startOrigin({ paths: { "/a": (reply) => reply.send({ body: "a" }) } });
    await using rig = createRig(origin);
    const sinks = [
      { write: () => Promise.reject(new Error("disk full")) },
      {
        write() {
          throw new Error("disk full");
        },
      },
    ];
    for (const sink of sinks) {
      await expect(
        rig.fetchInto("http://origin.example.com/a", sink, new AbortController().signal, {}),
      ).rejects.toThrow("disk full");
    }
    expect(rig.transport.sockets()).toBe(0);
    await origin.allClosed();
  });
});
