import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createStop, STOPPED, untilStop } from "./stop.ts";

function make(overrides: Partial<Parameters<typeof createStop>[0]> = {}) {
  return createStop({ signal: new AbortController().signal, deadline: 1_000, limitMs: 500, nowMs: 0, ...overrides });
}

describe("createStop", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("stops at the attempt's limit or the job's deadline, whichever is first, and says which", () => {
    const limited = make();
    vi.advanceTimersByTime(499);
    expect(limited.reason).toBeNull();
    vi.advanceTimersByTime(1);
    expect(limited.reason).toBe("ATTEMPT_LIMIT");
    const due = make({ deadline: 300 });
    vi.advanceTimersByTime(300);
    expect(due.reason).toBe("DEADLINE");
  });

  it("J5 a deadline that is past stops at once", () => {
    expect(make({ deadline: 100, nowMs: 100 }).reason).toBe("DEADLINE");
    expect(make({ deadline: 50, nowMs: 100 }).reason).toBe("DEADLINE");
  });

  it("calls its listeners once, those that come late at once, and none that left", () => {
    const controller = new AbortController();
    const stop = make({ signal: controller.signal });
    const [stays, leaves, late] = [vi.fn(), vi.fn(), vi.fn()];
    stop.onStop(stays);
    stop.onStop(leaves)();
    controller.abort();
    vi.advanceTimersByTime(10_000);
    stop.onStop(late);
    expect([stays, leaves, late].map(({ mock }) => mock.calls.length)).toEqual([1, 0, 1]);
    expect(stop.reason).toBe("ABORTED");
    expect(stop.signal.aborted).toBe(true);
  });

  it("leaves no timer and no listener behind", () => {
    const controller = new AbortController();
    const stop = make({ signal: controller.signal });
    stop.end();
    expect(vi.getTimerCount()).toBe(0);
    controller.abort();
    expect(stop.reason).toBeNull();
  });

  it("a wait that nobody can end is left behind", async () => {
    const stop = make();
    const waiting = untilStop(stop, new Promise(() => {}));
    stop.abort();
    expect(await waiting).toBe(STOPPED);
    expect(await untilStop(make(), Promise.resolve(1))).toBe(1);
    await expect(untilStop(make(), Promise.reject(new Error("x")))).rejects.toThrow("x");
  });
});
