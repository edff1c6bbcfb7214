import { describe, expect, test } from "vitest";
import { QuarantineRoute, RouteInfo, RouteInfoPage } from "./route-info.ts";
import { BudgetQuery } from "./budget.ts";
import { UsageItem, UsageQuery } from "./usage.ts";
import { zodDetails } from "./error-envelope.ts";

const info: RouteInfo = {
  route: "UNLOCKER",
  transport: "HTTP",
  available: false,
  reason: "quarantined",
  health: "QUARANTINED",
  quarantine: {
    reason: "PROVIDER_PAYMENT",
    nativeCode: "client_10020",
    note: null,
    by: "system:fetching",
    since: "2026-11-30T17:00:00.000Z",
    until: null,
  },
  requestsPerSecond: 0.5,
  concurrency: null,
  inFlight: 0,
  price: { unit: "PER_REQUEST", micros: 1_500, source: "https://brightdata.com/", asOf: "2026-05-25" },
  spend: {
    day: { settledMicros: 1, reservedMicros: 2, capMicros: null },
    month: { settledMicros: 1, reservedMicros: 2, capMicros: 3 },
  },
};

describe("a route as operators see it", () => {
  test("has one shape, free or paid, open or closed", () => {
    expect(RouteInfo.parse(info)).toEqual(info);
    const free = { ...info, health: "HEALTHY", quarantine: null, price: null, spend: null };
    expect(RouteInfo.safeParse(free).success).toBe(true);
    expect(RouteInfoPage.safeParse({ items: [info], nextCursor: null }).success).toBe(true);
    expect(RouteInfoPage.safeParse({ items: [info], nextCursor: "more" }).success).toBe(false);
    expect(RouteInfo.safeParse({ ...info, proxyUrl: "http://user:secret@proxy" }).success).toBe(false);
  });
});

describe("a quarantine", () => {
  test("needs nothing, and takes a note and one end", () => {
    const good = [
      {},
      { note: "the bill is being paid" },
      { seconds: 1 },
      { seconds: 2_592_000 },
      { note: "x", until: "2026-12-01T00:00:00+01:00" },
    ];
    expect(good.filter((body) => !QuarantineRoute.safeParse(body).success)).toEqual([]);
  });

  test.each([
    [{ seconds: 0 }, "seconds"],
    [{ seconds: 2_592_001 }, "seconds"],
    [{ seconds: 1.5 }, "seconds"],
    [{ seconds: "60" }, "seconds"],
    [{ until: "tomorrow" }, "until"],
    [{ seconds: 60, until: "2026-12-01T00:00:00Z" }, "until"],
    [{ note: "" }, "note"],
    [{ note: "x".repeat(501) }, "note"],
    [{ note: "a\u0000b" }, "note"],
    [{ reason: "OPERATOR" }, "reason"],
  ])("refuses %j, naming %s", (body, path) => {
    const parsed = QuarantineRoute.safeParse(body);
    expect(parsed.success ? [] : zodDetails(parsed.error).map((detail) => detail.path)).toEqual([path]);
  });
});

describe("questions about money", () => {
  test("are strict", () => {
    expect(BudgetQuery.parse({ period: "DAY", scope: "CALLER", name: "acme" })).toEqual({
      limit: 50,
      period: "DAY",
      scope: "CALLER",
      name: "acme",
    });
    const badBudgets = [
      { period: "YEAR" },
      { scope: "JOB" },
      { name: "a b" },
      { startsOn: "2026-11" },
      { startsOn: "2026-02-31" },
      { startsOn: "0000-01-01" },
      { foo: 1 },
    ];
    expect(badBudgets.filter((query) => BudgetQuery.safeParse(query).success)).toEqual([]);
    expect(UsageQuery.parse({})).toEqual({ groupBy: "route" });
    expect(UsageQuery.safeParse({ groupBy: "label:batch", from: "2026-11-30T00:00:00Z" }).success).toBe(true);
    const badUsage = [
      { groupBy: "label" },
      { groupBy: "label:" },
      { groupBy: "label:a b" },
      { groupBy: `label:${"x".repeat(65)}` },
      { groupBy: "caller" },
      { groupBy: "route\n" },
      { from: "2026-11-30" },
      { from: "0000-01-01T00:00:00Z", to: "0000-01-02T00:00:00Z" },
      { by: "route" },
    ];
    expect(badUsage.filter((query) => UsageQuery.safeParse(query).success)).toEqual([]);
  });

  test("are answered by route, or by a label with a place for jobs that lack it", () => {
    const sums = { attempts: 1, succeeded: 1, failed: 0, bodyBytes: 2, wireBytes: 3, costMicros: 4 };
    expect(UsageItem.safeParse({ route: "DIRECT", ...sums }).success).toBe(true);
    expect(UsageItem.safeParse({ label: null, ...sums }).success).toBe(true);
    expect(UsageItem.safeParse(sums).success).toBe(false);
  });
});
