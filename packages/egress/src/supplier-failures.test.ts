import { localFailure, UPSTREAM_CODES, upstreamFailure } from "@keble-scraper/contract";
import { describe, expect, it } from "vitest";
import { quarantineOf } from "./supplier-failures.ts";

const NOON = Date.parse("2026-11-30T12:00:00.000Z");

describe("quarantineOf", () => {
  it.each([
    ["PROVIDER_AUTH", 15 * 60_000],
    ["PROVIDER_PAYMENT", 60 * 60_000],
    ["PROVIDER_QUOTA", null],
  ] as const)("W4 %s quarantines its route, whichever supplier it came from", (code, forMs) => {
    for (const origin of ["PAID_EGRESS", "BROWSER_PROVIDER"] as const) {
      expect(quarantineOf(upstreamFailure(code, { origin }), NOON)).toEqual({ reason: code, forMs });
    }
  });

  it("W4 a quota with a date is spent until that date", () => {
    const failure = upstreamFailure("PROVIDER_QUOTA", { retryAt: "2026-11-30T12:10:00.000Z" });
    expect(quarantineOf(failure, NOON)).toEqual({ reason: "PROVIDER_QUOTA", forMs: 600_000 });
  });

  it("W4 a date that has passed or lies years ahead is not taken at its word", () => {
    const passed = upstreamFailure("PROVIDER_QUOTA", { retryAt: "2026-11-30T11:00:00.000Z" });
    expect(quarantineOf(passed, NOON)?.forMs).toBeNull();
    const far = upstreamFailure("PROVIDER_QUOTA", { retryAt: "2036-11-30T11:00:00.000Z" });
    expect(quarantineOf(far, NOON)?.forMs).toBe(31 * 24 * 3_600_000);
  });

  it("W4 no other failure quarantines a route with its table's defaults", () => {
    const quarantining = UPSTREAM_CODES.filter((code) => quarantineOf(upstreamFailure(code)) !== null);
    expect(quarantining.toSorted()).toEqual(["PROVIDER_AUTH", "PROVIDER_PAYMENT", "PROVIDER_QUOTA"]);
  });

  it("W4 a code of the account that was narrowed to one request does not", () => {
    expect(quarantineOf(upstreamFailure("PROVIDER_AUTH", { action: "CHANGE_REQUEST" }))).toBeNull();
    expect(quarantineOf(upstreamFailure("PROVIDER_AUTH", { origin: "TARGET" }))).toBeNull();
    expect(quarantineOf(localFailure("RATE_LIMITED"))).toBeNull();
  });
});
