import { MICROS_MAX, ROUTES, type Route } from "@keble-scraper/contract";
import { describe, expect, test } from "vitest";
import { DEFAULT_EGRESS_LIMITS, socketCeilingBytes } from "../transport/egress-limits.ts";
import { FREE_USAGE } from "../transport/fetch-outcome.ts";
import { attemptMicros, worstAttemptMicros } from "./attempt-micros.ts";
import { isPaidRoute, ROUTE_PRICES } from "./route-prices.ts";

const MIB = 1_048_576;

function worst(route: Route, change: Partial<Parameters<typeof worstAttemptMicros>[0]> = {}): number {
  const base = { maxBodyBytes: 10 * MIB, robots: "RESPECT", attemptMs: 60_000 } as const;
  return worstAttemptMicros({ route, priceMicros: ROUTE_PRICES[route].micros, ...base, ...change });
}

function used(route: Route, usage: Partial<typeof FREE_USAGE>, priceMicros = ROUTE_PRICES[route].micros): number {
  return attemptMicros({ route, priceMicros, usage: { ...FREE_USAGE, ...usage } });
}

describe("the price list", () => {
  test("W3 has the undiscounted list prices, each with a source and a date", () => {
    expect(ROUTES.map((route) => [route, ROUTE_PRICES[route].unit, ROUTE_PRICES[route].micros])).toEqual([
      ["DIRECT", "FREE", 0],
      ["DATACENTER", "PER_GIGABYTE", 600_000],
      ["RESIDENTIAL", "PER_GIGABYTE", 8_000_000],
      ["UNLOCKER", "PER_REQUEST", 1_500],
      ["CLOUDFLARE_RENDER", "PER_BROWSER_HOUR", 90_000],
      ["LOCAL_RENDER", "FREE", 0],
    ]);
    for (const route of ROUTES.filter(isPaidRoute)) {
      expect(ROUTE_PRICES[route].source).toMatch(/^https:\/\//);
      expect(ROUTE_PRICES[route].asOf).toMatch(/^2026-\d\d-\d\d$/);
    }
  });
});

describe("what an attempt may cost at most", () => {
  test("W3 by the gigabyte it is the socket ceiling that the transport enforces", () => {
    const ceiling = socketCeilingBytes(DEFAULT_EGRESS_LIMITS, 10 * MIB);
    // 2 % of the body, rounded up, for TLS; 128 KiB of slack; 32 KiB for each of six hops.
    expect(ceiling).toBe(10 * MIB + 209_716 + 327_680);
    // 11,023,156 bytes at 8 dollars a gigabyte are 88,185.248 micros.
    expect(worst("RESIDENTIAL")).toBe(88_186);
    expect(worst("DATACENTER")).toBe(6_614);
  });

  test("W3 by the request it is one, and one more where robots.txt is asked", () => {
    expect(worst("UNLOCKER", { robots: "IGNORE" })).toBe(1_500);
    expect(worst("UNLOCKER", { robots: "RESPECT" })).toBe(3_000);
  });

  test("W3 by browser time it is the attempt's hard limit", () => {
    expect(worst("CLOUDFLARE_RENDER", { attemptMs: 180_000 })).toBe(4_500);
    expect(worst("CLOUDFLARE_RENDER", { attemptMs: 1 })).toBe(1);
  });

  test.each(["DIRECT", "LOCAL_RENDER"] as const)("is nothing on %s, whatever a price says", (route) => {
    expect(worst(route, { priceMicros: 5_000 })).toBe(0);
  });

  test("is nothing at a price of nothing", () => {
    expect(worst("RESIDENTIAL", { priceMicros: 0 })).toBe(0);
  });
});

describe("what an attempt cost", () => {
  test.each([
    ["RESIDENTIAL", { socketBytes: 0 }, 0],
    // A byte costs 0.008 micros: a part of a micro is a whole one.
    ["RESIDENTIAL", { socketBytes: 1 }, 1],
    ["RESIDENTIAL", { socketBytes: 125 }, 1],
    ["RESIDENTIAL", { socketBytes: 126 }, 2],
    ["RESIDENTIAL", { socketBytes: 1_000_000_000 }, 8_000_000],
    ["RESIDENTIAL", { socketBytes: 1_000_000_001 }, 8_000_001],
    ["DATACENTER", { socketBytes: 1_000_000_000 }, 600_000],
    ["CLOUDFLARE_RENDER", { browserMs: 40 }, 1],
    ["CLOUDFLARE_RENDER", { browserMs: 41 }, 2],
    ["CLOUDFLARE_RENDER", { browserMs: 40.25 }, 2],
    ["CLOUDFLARE_RENDER", { browserMs: 3_600_000 }, 90_000],
    ["UNLOCKER", { requests: 0 }, 0],
    ["UNLOCKER", { requests: 1 }, 1_500],
    ["UNLOCKER", { requests: 2, isBilled: true }, 3_000],
    ["DIRECT", { requests: 9, socketBytes: 9, browserMs: 9 }, 0],
    ["LOCAL_RENDER", { requests: 9, socketBytes: 9, browserMs: 9 }, 0],
  ] as const)("W3 %s with %j: %i micros, rounded up", (route, usage, micros) => {
    expect(used(route, usage)).toBe(micros);
  });

  test("W3 a supplier that says it billed nothing is believed, one that says nothing is taken to have billed", () => {
    expect(used("UNLOCKER", { requests: 2, isBilled: false })).toBe(0);
    expect(used("UNLOCKER", { requests: 2, isBilled: null })).toBe(3_000);
    // Bytes are counted by us, whatever is said about requests.
    expect(used("RESIDENTIAL", { socketBytes: 126, isBilled: false })).toBe(2);
  });

  test("what stays within the ceiling costs no more than was reserved for it", () => {
    for (const maxBodyBytes of [1, 999, MIB, 100 * MIB]) {
      const socketBytes = socketCeilingBytes(DEFAULT_EGRESS_LIMITS, maxBodyBytes);
      expect(used("RESIDENTIAL", { socketBytes })).toBe(worst("RESIDENTIAL", { maxBodyBytes }));
      expect(used("RESIDENTIAL", { socketBytes: socketBytes - 1 })).toBeLessThanOrEqual(
        worst("RESIDENTIAL", { maxBodyBytes }),
      );
    }
  });

  test("is exact where a product passes 2^53, and bounded where no ledger could hold it", () => {
    // 1,000,000 dollars a gigabyte for 1,000,000,007 bytes: the product has 22 digits.
    const maxBodyBytes = 980_070_908;
    expect(socketCeilingBytes(DEFAULT_EGRESS_LIMITS, maxBodyBytes)).toBe(1_000_000_007);
    expect(worst("RESIDENTIAL", { priceMicros: MICROS_MAX, maxBodyBytes })).toBe(1_000_000_007_000);
    expect(worst("RESIDENTIAL", { priceMicros: MICROS_MAX, maxBodyBytes: 2 ** 52 })).toBe(Number.MAX_SAFE_INTEGER);
    expect(used("RESIDENTIAL", { socketBytes: Number.MAX_SAFE_INTEGER }, MICROS_MAX)).toBe(MICROS_MAX);
  });

  test.each([Number.NaN, -1, Number.POSITIVE_INFINITY])(
    "a fault is thrown for %d: money is never guessed",
    (amount) => {
      expect(() => used("RESIDENTIAL", { socketBytes: amount })).toThrow(RangeError);
      expect(() => used("RESIDENTIAL", { socketBytes: 1 }, amount)).toThrow(RangeError);
      expect(() => worst("CLOUDFLARE_RENDER", { attemptMs: amount })).toThrow(RangeError);
    },
  );
});
