import { afterEach, expect, it, vi } from "vitest";
import { POOL_WIDTHS, worstCaseInFlight } from "./pool-widths.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

// Dividing a width by the workers makes a gate narrower than one request's own fan-out: every large request then
// crawls through it in rounds until the proxy in front gives up at 30 s. That was an outage once.
it.each(["4", "6"])("the widths are literals that %s workers do not divide", async (workers) => {
  vi.stubEnv("WEB_CONCURRENCY", workers);
  vi.stubEnv("NODE_UNIQUE_ID", workers);
  vi.stubEnv("UV_THREADPOOL_SIZE", workers);
  vi.resetModules();
  const { poolUsage } = await import("./index.ts");
  const { resetPoolsForTests } = await import("./testing.ts");
  resetPoolsForTests();
  expect(poolUsage().DEFAULT.width).toBe(10);
  expect(poolUsage().BURST.width).toBe(25);
});

it("six workers have at most 210 requests in flight, 84 % of the widest rung that was measured", () => {
  expect(POOL_WIDTHS).toEqual({ DEFAULT: 10, BURST: 25 });
  expect(worstCaseInFlight(6)).toBe(210);
  expect(worstCaseInFlight(1)).toBe(35);
  expect(worstCaseInFlight(0)).toBe(0);
  expect(worstCaseInFlight(6) / 250).toBe(0.84);
});

it.each([-1, 1.5, Number.NaN, Infinity])("%d is no count of workers", (workers) => {
  expect(() => worstCaseInFlight(workers)).toThrow(RangeError);
});
