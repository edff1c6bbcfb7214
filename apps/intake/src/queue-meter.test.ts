import { expect, test } from "vitest";
import { createQueueMeter } from "./queue-meter.ts";

function meterOf(queuedMax: number, counted: number) {
  let now = 0;
  let counts = 0;
  const meter = createQueueMeter({
    queuedMax,
    monotonicMs: () => now,
    count: () => {
      counts += 1;
      return Promise.resolve(counted);
    },
  });
  return { meter, pass: (ms: number) => (now += ms), counts: () => counts };
}

test("J9 a small bound is always enforced exactly, without an estimate", async () => {
  const { meter, counts } = meterOf(10, 0);
  expect(await meter.boundFor("acme", 1)).toBe(10);
  expect(counts()).toBe(0);
});

test("J9 submits at once share one count and add up, so that together they reach the exact check", async () => {
  const { meter, counts } = meterOf(100_000, 79_990);
  const bounds = await Promise.all(Array.from({ length: 20 }, () => meter.boundFor("acme", 1)));
  expect(counts()).toBe(1);
  expect(bounds.filter((bound) => bound === 100_000).length).toBeGreaterThanOrEqual(10);
});

test("an estimate is made anew after a second, and one caller's says nothing of another's", async () => {
  const { meter, pass, counts } = meterOf(100_000, 5);
  expect(await meter.boundFor("acme", 1)).toBeNull();
  expect(await meter.boundFor("other", 1)).toBeNull();
  expect(counts()).toBe(2);
  pass(1_000);
  expect(await meter.boundFor("acme", 1)).toBeNull();
  expect(counts()).toBe(3);
});
