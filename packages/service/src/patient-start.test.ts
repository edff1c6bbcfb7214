import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Component } from "./component.ts";
import { createLogger } from "./logger.ts";
import { startPatiently } from "./patient-start.ts";

const logger = createLogger({ name: "test", level: "silent" });
const AWAY = new Error("away");
const options = { isAway: (error: unknown) => error === AWAY, logger, random: () => 1 };

/** Fails so many starts, then succeeds. */
function failing(failures: number, error: Error): Component & { starts: number } {
  const part = {
    name: "part",
    starts: 0,
    start() {
      part.starts += 1;
      return part.starts <= failures ? Promise.reject(error) : Promise.resolve();
    },
    stop: () => Promise.resolve(),
  };
  return part;
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("a part whose dependency is away is started when it is back, and not before", async () => {
  const part = failing(3, AWAY);
  let hasStarted = false;
  const started = startPatiently(part, options)
    .start(new AbortController().signal)
    .then(() => {
      hasStarted = true;
    });
  await vi.advanceTimersByTimeAsync(250 + 500 + 999);
  expect([part.starts, hasStarted]).toEqual([3, false]);
  await vi.advanceTimersByTimeAsync(1);
  await started;
  expect(part.starts).toBe(4);
});

test("waits grow to five seconds and no further", async () => {
  const part = failing(1_000, AWAY);
  const stop = new AbortController();
  const started = startPatiently(part, options).start(stop.signal).catch(String);
  await vi.advanceTimersByTimeAsync(60_000);
  const before = part.starts;
  await vi.advanceTimersByTimeAsync(50_000);
  expect(part.starts - before).toBe(10);
  stop.abort(new Error("stopping"));
  expect(await started).toBe("Error: stopping");
  expect(vi.getTimerCount()).toBe(0);
});

test("an error that is none of a dependency's ends the start at once", async () => {
  const part = failing(1, new Error("other"));
  await expect(startPatiently(part, options).start(new AbortController().signal)).rejects.toThrow("other");
  expect(part.starts).toBe(1);
});
