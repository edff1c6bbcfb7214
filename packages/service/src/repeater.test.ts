import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { SYSTEM_CLOCK } from "./clock.ts";
import { createLogger } from "./logger.ts";
import { createRepeater } from "./repeater.ts";
import { NO_SIGNALS } from "./signals.ts";

const INTERVAL_MS = 15_000;
const begin = new AbortController().signal;

function createRig(run: (signal: AbortSignal) => Promise<number>) {
  const lines: string[] = [];
  const logger = createLogger({
    name: "test",
    level: "info",
    destination: { write: (line: string) => void lines.push(String((JSON.parse(line) as { msg: unknown }).msg)) },
  });
  const repeater = createRepeater({
    name: "test",
    run,
    retryMs: INTERVAL_MS,
    clock: SYSTEM_CLOCK,
    signals: NO_SIGNALS,
    logger,
  });
  return { repeater, lines };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("a repeater", () => {
  test("runs by itself, at once and then as often as it asked for", async () => {
    let runs = 0;
    const { repeater } = createRig(() => {
      runs += 1;
      return Promise.resolve(INTERVAL_MS);
    });
    await repeater.start(begin);
    await repeater.start(begin);
    await vi.advanceTimersByTimeAsync(0);
    expect(runs).toBe(1);
    await vi.advanceTimersByTimeAsync(INTERVAL_MS * 3);
    expect(runs).toBe(4);
    await repeater.stop(performance.now());
    expect(vi.getTimerCount()).toBe(0);
  });

  test("wakes during a run make one more, never two at once", async () => {
    let atOnce = 0;
    let atOnceMax = 0;
    let runs = 0;
    const { repeater } = createRig(async () => {
      runs += 1;
      atOnce += 1;
      atOnceMax = Math.max(atOnceMax, atOnce);
      await new Promise((resolve) => setTimeout(resolve, 500));
      atOnce -= 1;
      return INTERVAL_MS;
    });
    await repeater.start(begin);
    repeater.wake();
    repeater.wake();
    await vi.advanceTimersByTimeAsync(499);
    repeater.wake();
    expect(runs).toBe(1);
    await vi.advanceTimersByTimeAsync(1_500);
    expect([runs, atOnceMax]).toEqual([2, 1]);
    await repeater.stop(performance.now());
  });

  test("a flood of wakes is at most ten runs a second", async () => {
    let runs = 0;
    const { repeater } = createRig(() => {
      runs += 1;
      return Promise.resolve(INTERVAL_MS);
    });
    await repeater.start(begin);
    for (let ms = 0; ms < 1_000; ms += 1) {
      repeater.wake();
      await vi.advanceTimersByTimeAsync(1);
    }
    expect(runs).toBeGreaterThan(5);
    expect(runs).toBeLessThan(12);
    await repeater.stop(performance.now());
  });

  test("a run that throws is run again, and logged once per change", async () => {
    let isBroken = true;
    let runs = 0;
    const { repeater, lines } = createRig(() => {
      runs += 1;
      return isBroken ? Promise.reject(new Error("no database")) : Promise.resolve(INTERVAL_MS);
    });
    await repeater.start(begin);
    await vi.advanceTimersByTimeAsync(INTERVAL_MS * 2);
    isBroken = false;
    await vi.advanceTimersByTimeAsync(INTERVAL_MS * 2);
    expect(runs).toBe(5);
    expect(lines).toEqual(["run.failed", "run.recovered"]);
    await repeater.stop(performance.now());
  });

  test("stop tells its run, waits for it until the deadline and no longer, and is safe before start", async () => {
    let reason: unknown;
    const { repeater } = createRig(async (signal) => {
      signal.addEventListener("abort", () => {
        reason = signal.reason as unknown;
      });
      await new Promise((resolve) => setTimeout(resolve, 5_000));
      return INTERVAL_MS;
    });
    await repeater.stop(performance.now());
    await repeater.start(begin);
    let isStopped = false;
    const stopped = repeater.stop(performance.now() + 1_000).then(() => {
      isStopped = true;
    });
    await vi.advanceTimersByTimeAsync(999);
    expect(isStopped).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await stopped;
    expect(reason).toBeDefined();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(vi.getTimerCount()).toBe(0);
  });
});
