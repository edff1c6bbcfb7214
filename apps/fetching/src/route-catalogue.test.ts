import type { QuarantineRow } from "@keble-scraper/db";
import { parseSettings } from "@keble-scraper/service";
import { describe, expect, test } from "vitest";
import { toRouteInfo } from "./get-route-infos.ts";
import { readLength } from "./procedures/quarantine-route.ts";
import { createCatalogue } from "./route-catalogue.ts";
import { toRouteStates } from "./route-states.ts";

const SECRETS = {
  SCRAPER_RESIDENTIAL_PROXY_URL: "http://brd-customer-hl1-zone-res:hunter2@proxy.internal:44445",
  SCRAPER_UNLOCKER_API_KEY: "hunter2-hunter2",
};

function catalogueOf(env: Record<string, string> = {}) {
  const parsed = parseSettings({
    SCRAPER_ENVIRONMENT: "test",
    SCRAPER_DATABASE_URL: "postgres://a:b@127.0.0.1:1/x",
    SCRAPER_REDIS_URL: "redis://127.0.0.1:1",
    SCRAPER_SERVICE_TOKEN: "a-token-of-the-test-that-is-long-enough-0123456789",
    SCRAPER_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
    ...env,
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return createCatalogue(parsed.value);
}

const ALL = {
  ...SECRETS,
  SCRAPER_DATACENTER_PROXY_URL: "http://user:hunter2@proxy.internal:8080",
  SCRAPER_RESIDENTIAL_PROXY_PROVIDER: "BRIGHT_DATA",
  SCRAPER_UNLOCKER_ZONE: "unblock",
  SCRAPER_CLOUDFLARE_ACCOUNT_ID: "0123456789abcdef0123456789abcdef",
  SCRAPER_CLOUDFLARE_API_TOKEN: "hunter2-hunter2",
  SCRAPER_LOCAL_RENDER: "on",
  SCRAPER_UNLOCKER_ATTEMPT_SECONDS: "181",
  SCRAPER_RENDER_ATTEMPT_SECONDS: "182",
  SCRAPER_HTTP_ATTEMPT_SECONDS: "61",
  SCRAPER_UNLOCKER_PRICE_MICROS: "1000",
  SCRAPER_UNLOCKER_DAILY_CAP_MICROS: "5000",
  SCRAPER_UNLOCKER_REQUESTS_PER_SECOND: "0.5",
};

const QUARANTINE: QuarantineRow = {
  route: "UNLOCKER",
  jobId: null,
  reason: "PROVIDER_PAYMENT",
  nativeCode: "client_10020",
  actor: "system:fetching",
  note: null,
  quarantinedAt: new Date("2026-11-30T17:00:00Z"),
  liftsAt: new Date("2026-11-30T18:00:00Z"),
  probedAt: null,
};

describe("the catalogue", () => {
  test("has every route; without settings only DIRECT is there, and the others name the settings they lack", () => {
    expect(catalogueOf().map(({ route, missing }) => [route, missing])).toEqual([
      ["DIRECT", null],
      ["DATACENTER", "SCRAPER_DATACENTER_PROXY_URL"],
      ["RESIDENTIAL", "SCRAPER_RESIDENTIAL_PROXY_URL"],
      ["UNLOCKER", "SCRAPER_UNLOCKER_API_KEY and SCRAPER_UNLOCKER_ZONE"],
      ["CLOUDFLARE_RENDER", "SCRAPER_CLOUDFLARE_ACCOUNT_ID and SCRAPER_CLOUDFLARE_API_TOKEN"],
      ["LOCAL_RENDER", "SCRAPER_LOCAL_RENDER"],
    ]);
  });

  test("holds no secret and no host", () => {
    expect(JSON.stringify(catalogueOf(ALL))).not.toMatch(/hunter2|internal|hl1|0123456789abcdef/);
  });

  test("knows each route's attempt limit and what of a job's wishes it can meet", () => {
    expect(
      catalogueOf(ALL).map(({ route, missing, attemptMs, narrows }) => [route, missing, attemptMs, narrows]),
    ).toEqual([
      ["DIRECT", null, 61_000, []],
      ["DATACENTER", null, 61_000, []],
      ["RESIDENTIAL", null, 61_000, ["country", "stickyKey"]],
      ["UNLOCKER", null, 181_000, ["country"]],
      ["CLOUDFLARE_RENDER", null, 182_000, []],
      ["LOCAL_RENDER", null, 182_000, []],
    ]);
  });

  test("W3 takes an operator's price and says so, else the list's with its source and date", () => {
    const prices = new Map(catalogueOf(ALL).map(({ route, price }) => [route, price]));
    expect(prices.get("DIRECT")).toBeNull();
    expect(prices.get("UNLOCKER")).toEqual({
      unit: "PER_REQUEST",
      micros: 1_000,
      source: "SCRAPER_UNLOCKER_PRICE_MICROS",
      asOf: null,
    });
    expect(prices.get("RESIDENTIAL")).toMatchObject({ unit: "PER_GIGABYTE", micros: 8_000_000, asOf: "2026-09-23" });
    expect(prices.get("RESIDENTIAL")?.source).toMatch(/^https:.*Second-hand/);
  });
});

describe("a route's state", () => {
  const stateOf = (env: Record<string, string>, quarantines: QuarantineRow[]) =>
    toRouteStates(catalogueOf(env), quarantines).find(({ route }) => route === "UNLOCKER");

  test("is healthy, quarantined until a moment, or not configured, which comes first", () => {
    expect(stateOf(ALL, [])).toEqual({
      route: "UNLOCKER",
      health: "HEALTHY",
      priceMicros: 1_000,
      attemptMs: 181_000,
      narrows: ["country"],
    });
    expect(stateOf(ALL, [QUARANTINE])).toMatchObject({
      health: "QUARANTINED",
      reason: "quarantined until 2026-11-30T18:00:00.000Z",
    });
    expect(stateOf(ALL, [{ ...QUARANTINE, liftsAt: null }])).toMatchObject({
      reason: "quarantined until it is released",
    });
    expect(stateOf({}, [QUARANTINE])).toMatchObject({ health: "NOT_CONFIGURED", reason: "not configured" });
  });
});

describe("a route as operators see it", () => {
  const entryOf = (env: Record<string, string>, route: string) => catalogueOf(env).find((one) => one.route === route)!;
  const nothing = { quarantine: null, spend: [], inFlight: 0 };

  test("tells its limits, load and money; a period without a row has spent nothing", () => {
    const spend = [
      { route: "UNLOCKER", period: "DAY" as const, settledMicros: 3, reservedMicros: 4, overrunMicros: 5 },
    ];
    expect(toRouteInfo(entryOf(ALL, "UNLOCKER"), { ...nothing, spend, inFlight: 2 })).toEqual({
      route: "UNLOCKER",
      transport: "HTTP",
      available: true,
      health: "HEALTHY",
      quarantine: null,
      requestsPerSecond: 0.5,
      concurrency: null,
      inFlight: 2,
      price: { unit: "PER_REQUEST", micros: 1_000, source: "SCRAPER_UNLOCKER_PRICE_MICROS", asOf: null },
      spend: {
        day: { settledMicros: 3, reservedMicros: 4, capMicros: 5_000 },
        month: { settledMicros: 0, reservedMicros: 0, capMicros: null },
      },
    });
  });

  test("shows the quarantine that stands, also of a route that is not configured", () => {
    const quarantine = {
      reason: "PROVIDER_PAYMENT",
      nativeCode: "client_10020",
      note: null,
      by: "system:fetching",
      since: "2026-11-30T17:00:00.000Z",
      until: "2026-11-30T18:00:00.000Z",
    };
    expect(toRouteInfo(entryOf(ALL, "UNLOCKER"), { ...nothing, quarantine: QUARANTINE })).toMatchObject({
      available: false,
      health: "QUARANTINED",
      quarantine,
    });
    expect(toRouteInfo(entryOf({}, "UNLOCKER"), { ...nothing, quarantine: QUARANTINE })).toMatchObject({
      available: false,
      reason: "not configured: set SCRAPER_UNLOCKER_API_KEY and SCRAPER_UNLOCKER_ZONE",
      health: "NOT_CONFIGURED",
      quarantine,
    });
  });

  test("a free one has neither price nor spend", () => {
    expect(toRouteInfo(entryOf(ALL, "DIRECT"), nothing)).toMatchObject({ price: null, spend: null, available: true });
  });
});

describe("the length of a quarantine", () => {
  const now = Date.parse("2026-11-30T12:00:00Z");
  test.each([
    [{}, null],
    [{ seconds: 60 }, 60_000],
    [{ until: "2026-11-30T13:00:01+01:00" }, 1_000],
    [{ until: "2026-12-30T12:00:00Z" }, 2_592_000_000],
  ])("of %j is %j ms, null until it is released", (input, forMs) => {
    expect(readLength(input, now)).toEqual({ ok: true, value: forMs });
  });

  test.each(["2026-11-30T12:00:00Z", "2020-01-01T00:00:00Z", "2026-12-30T12:00:00.001Z"])(
    "until %s is refused: past, or more than 30 days ahead",
    (until) => {
      expect(readLength({ until }, now)).toMatchObject({
        ok: false,
        failure: { code: "INVALID_REQUEST", details: [{ path: "until" }] },
      });
    },
  );
});
