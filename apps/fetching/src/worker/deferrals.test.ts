import type { Logger } from "@keble-scraper/service";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createDeferrals } from "./deferrals.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const logger = { warn: () => undefined } as unknown as Logger;

/** Deferrals whose every batch takes `batchMs` and moves what it is told to, and when each batch began. */
function openDeferrals(batchMs: number, moved: number[] = []) {
  const startedAt: number[] = [];
  let atOnce = 0;
  const deferrals = createDeferrals({
    async defer() {
      startedAt.push(performance.now());
      atOnce += 1;
      expect(atOnce).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, batchMs));
      atOnce -= 1;
      return moved.shift() ?? 0;
    },
    monotonicMs: () => performance.now(),
    logger,
  });
  return { deferrals, startedAt };
}

test("pokes close to each other are one look, which goes on while batches come back full", async () => {
  const { deferrals, startedAt } = openDeferrals(0, [1_000, 1_000, 3]);
  deferrals.poke();
  deferrals.poke();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(startedAt).toHaveLength(3);
});

test("J9 however often a host asks to be left alone, looks take a fifth of the time at the most, one after the other", async () => {
  const { deferrals, startedAt } = openDeferrals(1_000);
  for (let ms = 0; ms < 20_000; ms += 100) {
    deferrals.poke();
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(startedAt).toHaveLength(4);
});

test("a poke during a look leads to one more, and a stop waits for the look that runs", async () => {
  const { deferrals, startedAt } = openDeferrals(100);
  deferrals.poke();
  await vi.advanceTimersByTimeAsync(300);
  deferrals.poke();
  await vi.advanceTimersByTimeAsync(480);
  expect(startedAt).toHaveLength(2);
  let isStopped = false;
  void Promise.resolve(deferrals.stop(0)).then(() => (isStopped = true));
  await vi.advanceTimersByTimeAsync(40);
  expect(isStopped).toBe(false);
  deferrals.poke();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(isStopped).toBe(true);
  expect(startedAt).toHaveLength(2);
});
