import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Component } from "./component.ts";
import { createContainer } from "./container.ts";
import { runHealthChecks } from "./health.ts";
import { createLogger } from "./logger.ts";

const logger = createLogger({ name: "test", level: "silent" });

function part(name: string, log: string[], overrides: Partial<Component> = {}): Component {
  return {
    name,
    start: () => {
      log.push(`start ${name}`);
      return Promise.resolve();
    },
    stop: () => {
      log.push(`stop ${name}`);
      return Promise.resolve();
    },
    ...overrides,
  };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("a container", () => {
  test("starts its parts in order and stops them in reverse order, once", async () => {
    const log: string[] = [];
    const container = createContainer({
      name: "c",
      components: [part("a", log), part("b", log)],
      logger,
      drainGraceMs: 100,
    });
    expect(container.start()).toBe(container.start());
    await container.start();
    expect(container.stop()).toBe(container.stop(5));
    await container.stop();
    expect(log).toEqual(["start a", "start b", "stop b", "stop a"]);
  });

  test("a part that fails to start stops those before it, and its fault is thrown", async () => {
    const log: string[] = [];
    const broken = part("b", log, { start: () => Promise.reject(new Error("no")) });
    const container = createContainer({
      name: "c",
      components: [part("a", log), broken, part("c", log)],
      logger,
      drainGraceMs: 100,
    });
    await expect(container.start()).rejects.toThrow("no");
    await container.stop();
    expect(log).toEqual(["start a", "stop a"]);
  });

  test("a part that hangs or throws at its stop keeps no other from stopping", async () => {
    const log: string[] = [];
    const hangs = part("b", log, { stop: () => new Promise(() => undefined) });
    const throws = part("c", log, { stop: () => Promise.reject(new Error("no")) });
    const container = createContainer({
      name: "c",
      components: [part("a", log), hangs, throws],
      logger,
      drainGraceMs: 100,
      stopOverrunMs: 1_000,
    });
    await container.start();
    const stopped = container.stop();
    await vi.advanceTimersByTimeAsync(1_100);
    await stopped;
    expect(log.at(-1)).toBe("stop a");
    expect(vi.getTimerCount()).toBe(0);
  });

  test("a stop during the start aborts it and leaves nothing running", async () => {
    const log: string[] = [];
    const slow = part("b", log, {
      start: (signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(new Error("aborted")));
        }),
    });
    const container = createContainer({
      name: "c",
      components: [part("a", log), slow],
      logger,
      drainGraceMs: 100,
    });
    const started = container.start().catch((error: unknown) => String(error));
    await vi.advanceTimersByTimeAsync(0);
    await container.stop();
    expect(await started).toBe("Error: aborted");
    expect(log).toEqual(["start a", "stop a"]);
  });

  test("parts are told when the grace ends", async () => {
    let deadline = 0;
    const told = part("a", [], {
      stop: (at) => {
        deadline = at;
        return Promise.resolve();
      },
    });
    const container = createContainer({ name: "c", components: [told], logger, drainGraceMs: 20_000 });
    await container.start();
    const now = performance.now();
    await container.stop();
    expect(deadline - now).toBe(20_000);
  });
});

describe("health", () => {
  test("degraded never counts as down; a check that throws or hangs does", async () => {
    const ok = { name: "a", check: () => Promise.resolve("ok" as const) };
    const degraded = { name: "b", check: () => Promise.resolve("degraded" as const) };
    const throws = { name: "c", check: () => Promise.reject(new Error("host 10.0.0.1")) };
    const hangs = { name: "d", check: () => new Promise<"ok">(() => undefined) };
    expect((await runHealthChecks([ok, degraded])).status).toBe("degraded");
    expect((await runHealthChecks([])).status).toBe("ok");
    const both = await runHealthChecks([
      { ...ok, name: "wakeup" },
      { ...degraded, name: "wakeup" },
    ]);
    expect(both.checks).toEqual([{ name: "wakeup", status: "degraded" }]);
    const report = runHealthChecks([ok, throws, hangs]);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await report).toEqual({
      status: "down",
      checks: [
        { name: "a", status: "ok" },
        { name: "c", status: "down" },
        { name: "d", status: "down" },
      ],
    });
    expect(vi.getTimerCount()).toBe(0);
  });
});
