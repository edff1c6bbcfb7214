import { afterEach, beforeEach, describe, expect, expectTypeOf, it, vi } from "vitest";
import { createGatedTransport, settle } from "../test/gated-transport.ts";
import { FifoPool } from "./fifo-pool.ts";
import { runInBurstPool } from "./pool-scope.ts";
import { POOL_WIDTHS } from "./pool-widths.ts";
import { resetPoolsForTests } from "./testing.ts";
import { acquirePermit, poolUsage, withPermit } from "./with-permit.ts";

const range = (length: number): number[] => Array.from({ length }, (_, index) => index);

beforeEach(() => {
  resetPoolsForTests();
});

afterEach(() => {
  expect(poolUsage()).toEqual({
    DEFAULT: { width: 10, free: 10, waiting: 0 },
    BURST: { width: 25, free: 25, waiting: 0 },
  });
});

describe("widths", () => {
  it("twenty chunks of one request pass the default pool in two rounds", async () => {
    const transport = createGatedTransport();
    const all = range(20).map((chunk) => withPermit(() => transport.send(chunk)));
    expect(await transport.drain()).toBe(2);
    await Promise.all(all);
    expect(transport.sent).toHaveLength(20);
    expect(transport.peak).toBe(10);
  });

  it("a pool two wide would need ten rounds for the same request", async () => {
    const transport = createGatedTransport();
    const narrow = new FifoPool("DEFAULT", 2);
    const all = range(20).map(async (chunk) => {
      const permit = await narrow.acquire();
      await transport.send(chunk);
      permit.release();
    });
    expect(await transport.drain()).toBe(10);
    await Promise.all(all);
    expect(transport.peak).toBe(2);
  });

  it("sixty calls of a burst pass in three rounds of at most 25", async () => {
    const transport = createGatedTransport();
    const all = runInBurstPool(() => range(60).map((call) => withPermit(() => transport.send(call))));
    expect(await transport.drain()).toBe(3);
    await Promise.all(all);
    expect(transport.peak).toBe(25);
  });

  it("two walks that each want 25 at once share 25", async () => {
    const transport = createGatedTransport();
    const walk = (): Promise<number[]> => Promise.all(range(25).map((page) => withPermit(() => transport.send(page))));
    const walks = runInBurstPool(() => [walk(), walk()]);
    expect(await transport.drain()).toBe(2);
    await Promise.all(walks);
    expect(transport.peak).toBe(25);
  });

  it("the process never has more than 35 in flight", async () => {
    const transport = createGatedTransport();
    const all = range(100).flatMap((call) => [
      withPermit(() => transport.send(call)),
      runInBurstPool(() => withPermit(() => transport.send(call))),
    ]);
    await transport.drain();
    await Promise.all(all);
    expect(transport.sent).toHaveLength(200);
    expect(transport.peak).toBe(35);
  });

  it("a full pool does not hold up the other", async () => {
    for (const [full, other] of [
      ["BURST", "DEFAULT"],
      ["DEFAULT", "BURST"],
    ] as const) {
      const transport = createGatedTransport<string>();
      const start = (pool: string, count: number): Promise<string>[] => {
        const calls = (): Promise<string>[] => range(count).map(() => withPermit(() => transport.send(pool)));
        return pool === "BURST" ? runInBurstPool(calls) : calls();
      };
      const first = start(full, 200);
      await settle();
      expect(transport.running).toHaveLength(POOL_WIDTHS[full]);
      const second = start(other, POOL_WIDTHS[other]);
      await settle();
      expect(transport.running.filter(({ label }) => label === other)).toHaveLength(POOL_WIDTHS[other]);
      await transport.drain();
      await Promise.all([...first, ...second]);
    }
  });
});

describe("one set of pools per process", () => {
  it("two clients of one process share ten permits, first come first served", async () => {
    const transport = createGatedTransport<string>();
    const createClient = (name: string) => ({
      get: (call: number) => withPermit(() => transport.send(`${name}${call}`)),
    });
    const [a, b] = [createClient("a"), createClient("b")];
    const all = range(20).flatMap((call) => [a.get(call), b.get(call)]);
    expect(await transport.drain()).toBe(4);
    await Promise.all(all);
    expect(transport.peak).toBe(10);
    expect(transport.sent.map(({ label }) => label)).toEqual(range(20).flatMap((call) => [`a${call}`, `b${call}`]));
  });

  // A bundle, or two versions in node_modules, silently doubles the pools; the exit address sees the sum.
  it("two copies of the module share pools and selection", async () => {
    vi.resetModules();
    const copy = await import("./index.ts");
    expect(copy.withPermit).not.toBe(withPermit);
    const transport = createGatedTransport();
    const plain = range(20).flatMap((call) => [
      withPermit(() => transport.send(call)),
      copy.withPermit(() => transport.send(call)),
    ]);
    await settle();
    expect(transport.running).toHaveLength(10);
    await transport.drain();
    const burst = copy.runInBurstPool(() => range(60).map((call) => withPermit(() => transport.send(call))));
    await settle();
    expect(transport.running).toHaveLength(25);
    await transport.drain();
    await Promise.all([...plain, ...burst]);
  });

  it("a reset gives a test the full width whatever an earlier one left behind", async () => {
    const held = await Promise.all(range(10).map(() => acquirePermit()));
    const left = acquirePermit();
    expect(poolUsage().DEFAULT).toEqual({ width: 10, free: 0, waiting: 1 });
    resetPoolsForTests();
    expect(poolUsage().DEFAULT).toEqual({ width: 10, free: 10, waiting: 0 });
    for (const permit of held) permit.release();
    (await left).release();
  });

  it("the reset is not in the main entry", async () => {
    expect(Object.keys(await import("./index.ts")).filter((name) => /reset|test/i.test(name))).toEqual([]);
  });
});

describe("permits", () => {
  it("are given back on success, on failure, on a throw before the first await and on an abort in flight", async () => {
    const abort = new AbortController();
    const outcomes = await Promise.allSettled([
      withPermit(async () => "fine"),
      withPermit(() => Promise.reject(new Error("refused"))),
      withPermit(() => {
        throw new Error("at once");
      }),
      withPermit(
        () =>
          new Promise((_, reject) => {
            abort.signal.addEventListener("abort", () => reject(abort.signal.reason as Error));
            abort.abort(new Error("given up"));
          }),
        abort.signal,
      ),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "rejected"]);
  });

  it("are given back once: a second release throws and frees nothing", async () => {
    const permit = await acquirePermit();
    permit.release();
    expect(() => permit.release()).toThrow("released twice");
    expect(poolUsage().DEFAULT.free).toBe(10);
  });

  it("span the body: a call whose body stalls keeps its place", async () => {
    const body = createGatedTransport();
    const stalled = range(10).map((call) =>
      withPermit(async () => {
        await Promise.resolve("headers");
        return body.send(call);
      }),
    );
    const next = createGatedTransport();
    const eleventh = withPermit(() => next.send(11));
    await settle();
    expect(next.running).toHaveLength(0);
    await body.round();
    expect(next.running).toHaveLength(1);
    await next.drain();
    await Promise.all([...stalled, eleventh]);
  });

  it("go to the longest waiter, not to a newcomer", async () => {
    const held = await Promise.all(range(10).map(() => acquirePermit()));
    const order: string[] = [];
    const wait = (name: string): Promise<void> =>
      acquirePermit().then((permit) => (order.push(name), permit.release()));
    const early = [wait("first"), wait("second")];
    held[0]!.release();
    const late = wait("newcomer");
    await Promise.all([...early, late]);
    expect(order).toEqual(["first", "second", "newcomer"]);
    for (const permit of held.slice(1)) permit.release();
  });

  it("a permit names the pool it belongs to", async () => {
    expectTypeOf(withPermit<number>)
      .parameter(0)
      .toEqualTypeOf<(pool: "DEFAULT" | "BURST") => Promise<number>>();
    expect(await withPermit(async (pool) => pool)).toBe("DEFAULT");
    expect(await runInBurstPool(() => withPermit(async (pool) => pool))).toBe("BURST");
  });
});

describe("an abort", () => {
  it("while queued leaves the queue at once, from the front, the middle and the end", async () => {
    const held = await Promise.all(range(10).map(() => acquirePermit()));
    const aborts = range(5).map(() => new AbortController());
    const ran: number[] = [];
    const queued = aborts.map(({ signal }, index) => withPermit(async () => ran.push(index), signal));
    const outcomes = Promise.allSettled(queued);
    for (const index of [2, 0, 4]) aborts[index]!.abort(new Error(`gone ${index}`));
    expect(poolUsage().DEFAULT.waiting).toBe(2);
    for (const permit of held) permit.release();
    expect((await outcomes).map(({ status }) => status)).toEqual([
      "rejected",
      "fulfilled",
      "rejected",
      "fulfilled",
      "rejected",
    ]);
    await expect(queued[2]).rejects.toThrow("gone 2");
    expect(ran).toEqual([1, 3]);
  });

  it("before the call takes no permit and sends nothing", async () => {
    const send = vi.fn(async () => 1);
    await expect(withPermit(send, AbortSignal.abort(new Error("too late")))).rejects.toThrow("too late");
    expect(send).not.toHaveBeenCalled();
  });

  it("between the grant and the send gives the permit back unused", async () => {
    const held = await Promise.all(range(10).map(() => acquirePermit()));
    const abort = new AbortController();
    const send = vi.fn(async () => 1);
    const call = withPermit(send, abort.signal);
    held[0]!.release();
    abort.abort(new Error("in between"));
    await expect(call).rejects.toThrow("in between");
    expect(send).not.toHaveBeenCalled();
    for (const permit of held.slice(1)) permit.release();
  });

  it("leaves no listener on a signal that outlives the call", async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on("warning", onWarning);
    const { signal } = new AbortController();
    const added = vi.spyOn(signal, "addEventListener");
    const removed = vi.spyOn(signal, "removeEventListener");
    const held = await Promise.all(range(10).map(() => acquirePermit()));
    const queued = range(50).map(() => withPermit(async () => undefined, signal));
    for (const permit of held) permit.release();
    await Promise.all(queued);
    await settle();
    expect(warnings).toEqual([]);
    process.off("warning", onWarning);
    expect(added).toHaveBeenCalledTimes(50);
    expect(removed).toHaveBeenCalledTimes(50);
  });
});

it("a queue of a hundred thousand drains in order without going quadratic", async () => {
  const held = await Promise.all(range(10).map(() => acquirePermit()));
  const order: number[] = [];
  const queued = range(100_000).map((index) => withPermit(async () => void order.push(index)));
  for (const permit of held) permit.release();
  await Promise.all(queued);
  expect(order).toHaveLength(100_000);
  expect(order.every((index, at) => index === at)).toBe(true);
});
