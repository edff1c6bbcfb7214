import { setTimeout as timer } from "node:timers/promises";
import { beforeEach, describe, expect, it } from "vitest";
import { createGatedTransport, seededRandom, settle } from "../test/gated-transport.ts";
import { currentPool, runInBurstPool, runInDefaultPool } from "./pool-scope.ts";
import { resetPoolsForTests } from "./testing.ts";
import { poolUsage, withPermit } from "./with-permit.ts";

const poolOfCall = (): Promise<string> => withPermit(async (pool) => pool);

beforeEach(() => {
  resetPoolsForTests();
});

describe("the selection", () => {
  it("reaches every nested fan-out, await, timer and microtask", async () => {
    const inner = async (): Promise<string[]> => {
      await timer(0);
      await new Promise<void>((resolve) => queueMicrotask(resolve));
      return Promise.all([poolOfCall(), poolOfCall(), settle().then(poolOfCall)]);
    };
    const pools = await runInBurstPool(async () => (await Promise.all([inner(), inner()])).flat());
    expect(pools).toEqual(Array.from({ length: 6 }, () => "BURST"));
  });

  it("stays with work that is still pending when its scope has returned", async () => {
    const { promise, open } = gate();
    const pending = runInBurstPool(() => promise.then(poolOfCall));
    expect(currentPool()).toBe("DEFAULT");
    open();
    expect(await pending).toBe("BURST");
  });

  it("is read when the permit is taken, not when the caller was made", async () => {
    const madeInside = runInBurstPool(() => ({ get: poolOfCall }));
    const madeOutside = { get: poolOfCall };
    expect(await madeInside.get()).toBe("DEFAULT");
    expect(await runInBurstPool(() => madeOutside.get())).toBe("BURST");
  });

  it("does not reach work that was started before", async () => {
    const { promise, open } = gate();
    const started = promise.then(poolOfCall);
    const awaited = runInBurstPool(() => started);
    open();
    expect(await awaited).toBe("DEFAULT");
  });

  it("is back to what it was after a return, a throw and a rejection", async () => {
    expect(runInBurstPool(() => currentPool())).toBe("BURST");
    expect(currentPool()).toBe("DEFAULT");
    expect(() =>
      runInBurstPool(() => {
        throw new Error("broken");
      }),
    ).toThrow("broken");
    expect(currentPool()).toBe("DEFAULT");
    await expect(runInBurstPool(() => Promise.reject(new Error("later")))).rejects.toThrow("later");
    expect(currentPool()).toBe("DEFAULT");
    expect(runInBurstPool(() => [runInDefaultPool(currentPool), currentPool()])).toEqual(["DEFAULT", "BURST"]);
  });

  it("of one request never shows in another, over 100 random interleavings", async () => {
    const random = seededRandom(20_261_130);
    const request = async (expected: string): Promise<void> => {
      for (let step = 0; step < 5; step += 1) {
        if (random() < 0.5) await settle();
        expect(await poolOfCall()).toBe(expected);
      }
    };
    for (let round = 0; round < 100; round += 1) {
      const requests = [() => request("DEFAULT"), () => runInBurstPool(() => request("BURST"))];
      if (random() < 0.5) requests.reverse();
      await Promise.all(requests.map((start) => start()));
    }
  });

  // A queue of bare callbacks would run the waiter as part of whoever released, and so on the wrong pool.
  it("of a waiter survives being woken by a caller of the other selection", async () => {
    const transport = createGatedTransport<string>();
    const holders = Array.from({ length: 25 }, () => runInBurstPool(() => withPermit(() => transport.send("holder"))));
    const waiter = runInBurstPool(async () => {
      const own = await poolOfCall();
      return [own, currentPool(), await poolOfCall()];
    });
    await settle();
    expect(poolUsage().BURST.waiting).toBe(1);
    expect(currentPool()).toBe("DEFAULT");
    transport.running[0]!.open();
    expect(await waiter).toEqual(["BURST", "BURST", "BURST"]);
    await transport.drain();
    await Promise.all(holders);

    const held = Array.from({ length: 10 }, () => withPermit(() => transport.send("held")));
    const plain = poolOfCall().then(() => currentPool());
    await settle();
    runInBurstPool(() => transport.running[0]!.open());
    expect(await plain).toBe("DEFAULT");
    await transport.drain();
    await Promise.all(held);
  });

  it("can be left by background work that a burst starts", async () => {
    let background: Promise<string[]> | undefined;
    const live = await runInBurstPool(async () => {
      background = runInDefaultPool(async () => [await poolOfCall(), await settle().then(poolOfCall)]);
      return poolOfCall();
    });
    expect(live).toBe("BURST");
    expect(await background).toEqual(["DEFAULT", "DEFAULT"]);
  });

  it("needs no parameter: a walk written against a fixed-arity get is moved as it is", async () => {
    const get = (region: string, path: string): Promise<string> =>
      withPermit(async (pool) => `${region}${path} ${pool}`);
    const walk = (fetchPage: typeof get): Promise<string[]> =>
      Promise.all([fetchPage("us", "/1"), fetchPage("us", "/2")]);
    expect(await walk(get)).toEqual(["us/1 DEFAULT", "us/2 DEFAULT"]);
    expect(await runInBurstPool(() => walk(get))).toEqual(["us/1 BURST", "us/2 BURST"]);
  });
});

function gate(): { promise: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open: () => open() };
}
