import { type RouteState, SubmitJob, type SubmitJobInput } from "@keble-scraper/contract";
import { NO_ALLOWED_TARGETS } from "@keble-scraper/egress";
import { describe, expect, test } from "vitest";
import { worstJobMicros } from "./job-cost.ts";
import { vetJob } from "./job-policy.ts";

const open = { health: "HEALTHY", attemptMs: 180_000 } as const;
const ALL: RouteState[] = [
  { route: "DIRECT", ...open, priceMicros: 0, narrows: [] },
  // A plain proxy.
  { route: "DATACENTER", ...open, priceMicros: 600_000, narrows: [] },
  { route: "RESIDENTIAL", ...open, priceMicros: 8_000_000, narrows: ["country", "stickyKey"] },
  { route: "UNLOCKER", ...open, priceMicros: 1_500, narrows: ["country"] },
  { route: "CLOUDFLARE_RENDER", ...open, priceMicros: 90_000, narrows: [] },
  { route: "LOCAL_RENDER", ...open, priceMicros: 0, narrows: [] },
];
const MONEY = { costCapMicros: 1_000_000 };

function jobOf(fields: Partial<SubmitJobInput>): SubmitJob {
  return SubmitJob.parse({ target: { url: "https://shop.example.com/" }, ...fields });
}

function refusalOf(fields: Partial<SubmitJobInput>, routes = ALL) {
  const vetted = vetJob(jobOf(fields), { routes, allowedTargets: NO_ALLOWED_TARGETS, bodyBytesMax: 100_000_000 });
  return vetted.ok ? null : { code: vetted.failure.code, details: vetted.failure.details };
}

const HEAD = { url: "https://shop.example.com/", method: "HEAD" } as const;

describe("a job is accepted", () => {
  test.each<[string, Partial<SubmitJobInput>]>([
    ["by every HTTP route", { routes: ["DIRECT", "DATACENTER", "RESIDENTIAL", "UNLOCKER"], limits: MONEY }],
    ["with money it can't spend", { limits: MONEY }],
    ["by a browser", { transport: "RENDER" }],
    ["as MHTML, by our own browser", { transport: "RENDER", capture: "MHTML" }],
    [
      "as a PDF, by either browser",
      { transport: "RENDER", routes: ["LOCAL_RENDER", "CLOUDFLARE_RENDER"], capture: "PDF", limits: MONEY },
    ],
    ["as a HEAD through a proxy", { target: HEAD, routes: ["DIRECT", "DATACENTER", "RESIDENTIAL"], limits: MONEY }],
    [
      "from a country and a sticky exit",
      { routes: ["DIRECT", "RESIDENTIAL"], egress: { country: "us", stickyKey: "cart-42" }, limits: MONEY },
    ],
    ["from a country by the Unlocker", { routes: ["UNLOCKER"], egress: { country: "us" }, limits: MONEY }],
    ["with less money than one attempt may cost", { routes: ["RESIDENTIAL"], limits: { costCapMicros: 1 } }],
  ])("%s", (_what, fields) => {
    expect(refusalOf(fields)).toBeNull();
  });

  test("although its route is quarantined: it waits", () => {
    const closed = ALL.map((state) => ({ ...state, health: "QUARANTINED" as const, reason: "quarantined" }));
    expect(refusalOf({ routes: ["UNLOCKER"], limits: MONEY }, closed)).toBeNull();
  });
});

describe("a job is refused", () => {
  test.each<[string, Partial<SubmitJobInput>, string]>([
    ["a HEAD of the Unlocker", { target: HEAD, routes: ["DIRECT", "UNLOCKER"], limits: MONEY }, "target.method"],
    ["a HEAD of a browser", { target: HEAD, transport: "RENDER" }, "target.method"],
    ["a capture of what is not rendered", { capture: "DOM" }, "capture"],
    [
      "MHTML of Cloudflare",
      { transport: "RENDER", routes: ["LOCAL_RENDER", "CLOUDFLARE_RENDER"], capture: "MHTML", limits: MONEY },
      "capture",
    ],
    ["wishes when all routes are free", { egress: { country: "us" }, limits: MONEY }, "egress"],
    ["wishes of our own browser", { transport: "RENDER", egress: { stickyKey: "a" } }, "egress"],
    [
      "a country of a plain proxy",
      { routes: ["DATACENTER"], egress: { country: "us" }, limits: MONEY },
      "egress.country",
    ],
    [
      "a country of Cloudflare",
      { transport: "RENDER", routes: ["CLOUDFLARE_RENDER"], egress: { country: "us" }, limits: MONEY },
      "egress.country",
    ],
    [
      "a sticky exit of the Unlocker",
      { routes: ["RESIDENTIAL", "UNLOCKER"], egress: { stickyKey: "a" }, limits: MONEY },
      "egress.stickyKey",
    ],
    ["a body over the ceiling", { limits: { maxBodyBytes: 100_000_001 } }, "limits.maxBodyBytes"],
  ])("%s: NOT_SUPPORTED, naming the field", (_what, fields, path) => {
    expect(refusalOf(fields)).toMatchObject({ code: "NOT_SUPPORTED", details: [{ path }] });
  });

  test("a route that is not configured: ROUTE_UNAVAILABLE, naming those that serve the transport", () => {
    const states = ALL.map((state) =>
      state.route === "UNLOCKER" ? { ...state, health: "NOT_CONFIGURED" as const, reason: "not configured" } : state,
    );
    expect(refusalOf({ routes: ["DIRECT", "UNLOCKER"], limits: MONEY }, states)).toEqual({
      code: "ROUTE_UNAVAILABLE",
      details: [
        {
          path: "routes.1",
          message: "UNLOCKER is not available. Available for HTTP: DIRECT, DATACENTER, RESIDENTIAL.",
        },
      ],
    });
  });

  test("a route of the other transport: ROUTE_UNAVAILABLE, saying what it serves", () => {
    const refusal = refusalOf({ routes: ["LOCAL_RENDER"] });
    expect(refusal).toMatchObject({ code: "ROUTE_UNAVAILABLE", details: [{ path: "routes.0" }] });
    expect(refusal?.details?.[0]?.message).toMatch(/^LOCAL_RENDER serves RENDER jobs\. /u);
  });

  test("a paid route without money, also at a price of nothing: it says what one attempt may cost", () => {
    expect(refusalOf({ routes: ["DIRECT", "UNLOCKER"] })).toEqual({
      code: "COST_CAP_EXCEEDED",
      details: [
        {
          path: "limits.costCapMicros",
          message: "UNLOCKER is paid: allow the job money. One attempt like this may cost 3000 micro-USD.",
        },
      ],
    });
    const gratis = ALL.map((state) => ({ ...state, priceMicros: 0 }));
    expect(refusalOf({ routes: ["UNLOCKER"] }, gratis)).toMatchObject({ code: "COST_CAP_EXCEEDED" });
  });
});

describe("what a job may cost at most", () => {
  test.each<[Partial<SubmitJobInput>, number]>([
    [{}, 0],
    [{ limits: MONEY }, 0],
    // Three attempts of two requests each.
    [{ routes: ["DIRECT", "UNLOCKER"], limits: MONEY }, 9_000],
    [{ routes: ["UNLOCKER"], robots: "IGNORE", limits: MONEY }, 4_500],
    // The dearest route counts, whichever is listed first.
    [{ routes: ["RESIDENTIAL", "UNLOCKER"], limits: { ...MONEY, attemptBudget: 2 } }, 176_372],
    [{ routes: ["RESIDENTIAL"], limits: { costCapMicros: 100_000 } }, 100_000],
    // 180 s of browser time at 90,000 an hour, three times.
    [{ transport: "RENDER", routes: ["CLOUDFLARE_RENDER"], limits: MONEY }, 13_500],
  ])("W3 of %j is %i micros: every attempt by its dearest route, within its cap", (fields, micros) => {
    expect(worstJobMicros(jobOf(fields), ALL)).toBe(micros);
  });
});
