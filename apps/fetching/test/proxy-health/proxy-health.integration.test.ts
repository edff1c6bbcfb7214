import { type Route, type UpstreamCode, upstreamFailure } from "@keble-scraper/contract";
import { createDatabase, type Database, listQuarantines, migrate } from "@keble-scraper/db";
import { quarantineRoute } from "@keble-scraper/db/commands/fetching";
import type { ProbeResult } from "@keble-scraper/egress";
import { type Container, parseSettings } from "@keble-scraper/service";
import {
  createGate,
  createTestDatabase,
  createTestSignals,
  startTcpProxy,
  type TestDatabase,
  type TestRedis,
  testRedis,
  type TestSignals,
} from "@keble-scraper/testkit";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createProxyHealthWorker } from "../../src/proxy-health/proxy-health-worker.ts";
import type { ProxyHealthSettings } from "../../src/proxy-health/proxy-health-settings.ts";
import type { ProbeQuestion, SupplierProbe } from "../../src/proxy-health/supplier-probe.ts";

const MINUTE_MS = 60_000;
const HEALTHY: ProbeResult = { ok: true };
const failing = (code: UpstreamCode): ProbeResult => ({
  ok: false,
  failure: upstreamFailure(code, { nativeCode: "client_10000" }),
});

let clone: TestDatabase;
let redis: TestRedis;
let database: Database;
let redisClient: Redis;
let signals: TestSignals;
let cleanups: (() => Promise<void>)[];
/** An interval so long that every end is near, and one look all there is. */
const ONE_LOOK = { SCRAPER_PROXY_HEALTH_INTERVAL_SECONDS: "600" };

/** What the suppliers were asked, in order. */
let asked: (ProbeQuestion & { readonly route: Route })[];
/** What they answer; a route that is not named is not configured. */
let answers: Partial<Record<Route, () => ProbeResult | Promise<ProbeResult>>>;

beforeEach(async () => {
  clone = await createTestDatabase({ migrate });
  redis = await testRedis();
  redisClient = new Redis(redis.url);
  signals = createTestSignals();
  cleanups = [];
  asked = [];
  answers = {};
  database = createDatabase({
    url: clone.url,
    applicationName: "test",
    commandConnections: 2,
    readConnections: 1,
    statementTimeoutMs: 20_000,
  });
});

afterEach(async () => {
  for (const cleanup of cleanups.toReversed()) await cleanup();
  await database.stop(performance.now() + 1_000);
  const left = await redisClient.keys(`{${prefixName()}}*`);
  if (left.length > 0) await redisClient.del(left);
  redisClient.disconnect();
  await clone[Symbol.asyncDispose]();
});

const prefixName = () => redis.prefix.replaceAll(":", "");

function settings(env: Record<string, string> = {}): ProxyHealthSettings {
  const parsed = parseSettings({
    SCRAPER_ENVIRONMENT: "test",
    SCRAPER_LOG_LEVEL: "silent",
    SCRAPER_DATABASE_URL: clone.url,
    SCRAPER_REDIS_URL: redis.url,
    SCRAPER_REDIS_PREFIX: prefixName(),
    SCRAPER_SERVICE_TOKEN: "a-service-token-for-tests",
    SCRAPER_SECRET_KEY: "ab".repeat(32),
    SCRAPER_PROXY_HEALTH_INTERVAL_SECONDS: "0.1",
    ...env,
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return parsed.value;
}

/** Starts a worker whose suppliers answer as `answers` says. */
async function startWorker(
  options: {
    readonly env?: Record<string, string>;
    readonly signals?: TestSignals;
    readonly probeTimeoutMs?: number;
  } = {},
): Promise<Container> {
  const probes = new Map<Route, SupplierProbe>();
  for (const route of Object.keys(answers) as Route[]) {
    probes.set(route, async (question) => {
      asked.push({ ...question, route });
      return answers[route]!();
    });
  }
  const worker = createProxyHealthWorker(settings(options.env), {
    signals: options.signals ?? signals,
    probes,
    ...(options.probeTimeoutMs === undefined ? {} : { probeTimeoutMs: options.probeTimeoutMs }),
  });
  await worker.start();
  cleanups.push(() => worker.stop(1_000));
  return worker;
}

async function quarantine(route: Route, reason: string, forMs: number | null = 15 * MINUTE_MS): Promise<void> {
  await quarantineRoute(database.commands, {
    route,
    reason,
    nativeCode: null,
    note: null,
    forMs,
    by: { actor: "system:test", requestId: null },
  });
}

const ran = (times = 2) => signals.reachedTimes("proxy-health.ran", times);
const standing = async () => (await listQuarantines(database.commands)).map(({ route }) => route);
const audit = () =>
  database.commands<{ action: string; actor: string; subject: string }[]>`
    select action, actor, subject from audit_events order by id`;

/** What waits at a bell. */
async function rungAt(bell: "fetch" | "render"): Promise<unknown[]> {
  const entries = await redisClient.hvals(`{${prefixName()}}:${bell}:jobs`);
  return entries.map((entry) => (JSON.parse(entry) as { data: unknown }).data);
}

describe("proxy-health", () => {
  test("W4 proof of health lifts a quarantine, audited, and wakes the workers of its transport", async () => {
    await quarantine("CLOUDFLARE_RENDER", "PROVIDER_PAYMENT");
    answers = { CLOUDFLARE_RENDER: () => HEALTHY };
    await startWorker();
    await expect.poll(standing, { timeout: 10_000 }).toEqual([]);
    expect((await audit()).at(-1)).toEqual({
      action: "route.released",
      actor: "system:proxy-health",
      subject: "route:CLOUDFLARE_RENDER",
    });
    await expect.poll(() => rungAt("render"), { timeout: 10_000 }).toEqual([{ transport: "RENDER" }]);
    expect(asked).toHaveLength(1);
    expect(asked[0]?.quarantinedFor).toBe("PROVIDER_PAYMENT");
  });

  // A person closed the route for a reason that no supplier knows of, and a supplier that is well may still bill too much.
  test.each(["OPERATOR", "COST_OVERRUN"])(
    "W4 it never asks about, and never lifts, a quarantine for %s",
    async (reason) => {
      await quarantine("DATACENTER", reason, null);
      answers = { DATACENTER: () => HEALTHY };
      await startWorker();
      await ran(3);
      expect(await standing()).toEqual(["DATACENTER"]);
      expect(asked).toEqual([]);
    },
  );

  test("W4 an operator who closes the route while its supplier is asked is not overruled", async () => {
    await quarantine("RESIDENTIAL", "PROVIDER_AUTH");
    const begun = createGate();
    const go = createGate();
    answers = {
      RESIDENTIAL: async () => {
        begun.open();
        await go.opened;
        return HEALTHY;
      },
    };
    await startWorker();
    await begun.opened;
    await quarantine("RESIDENTIAL", "OPERATOR", null);
    go.open();
    await ran(2);
    expect(await standing()).toEqual(["RESIDENTIAL"]);
    expect((await audit()).map(({ action }) => action)).toEqual(["route.quarantined", "route.quarantined"]);
  });

  test("W4 a route that stays refused is kept closed past its end", async () => {
    await quarantine("UNLOCKER", "PROVIDER_AUTH");
    answers = { UNLOCKER: () => failing("PROVIDER_PAYMENT") };
    await startWorker({ env: ONE_LOOK });
    await ran(1);
    const [row] = await listQuarantines(database.commands);
    expect(row).toMatchObject({ route: "UNLOCKER", reason: "PROVIDER_PAYMENT", nativeCode: "client_10000" });
    expect(row!.liftsAt!.getTime() - Date.now()).toBeGreaterThan(50 * MINUTE_MS);
  });

  test("W4 an end that is far is not moved at every look: one row of the audit, not one a minute", async () => {
    await quarantine("UNLOCKER", "PROVIDER_AUTH");
    const [before] = await listQuarantines(database.commands);
    answers = { UNLOCKER: () => failing("PROVIDER_PAYMENT") };
    await startWorker();
    await ran(4);
    expect(asked.length).toBeGreaterThan(1);
    const [after] = await listQuarantines(database.commands);
    expect(after?.liftsAt).toEqual(before?.liftsAt);
    expect(await audit()).toHaveLength(1);
  });

  test.each<readonly [string, () => ProbeResult | Promise<ProbeResult>]>([
    ["a failure that says nothing of our account", () => failing("PROVIDER_FAILURE")],
    ["silence", () => new Promise<ProbeResult>(() => {})],
    ["a fault", () => Promise.reject(new Error("no such thing"))],
  ])("W4 %s is no proof either way", async (_what, answer) => {
    await quarantine("DATACENTER", "PROVIDER_AUTH");
    const [before] = await listQuarantines(database.commands);
    answers = { DATACENTER: answer };
    await startWorker({ env: ONE_LOOK, probeTimeoutMs: 20 });
    await ran(1);
    const [after] = await listQuarantines(database.commands);
    expect(after).toMatchObject({ reason: "PROVIDER_AUTH", liftsAt: before?.liftsAt });
    expect(after?.probedAt).not.toBeNull();
  });

  test("a route without a supplier is left to its end", async () => {
    await quarantine("RESIDENTIAL", "PROVIDER_AUTH");
    await startWorker();
    await ran(2);
    const [row] = await listQuarantines(database.commands);
    expect(row).toMatchObject({ route: "RESIDENTIAL", probedAt: null });
  });

  test("one supplier that is silent delays no other", async () => {
    await quarantine("DATACENTER", "PROVIDER_AUTH");
    await quarantine("UNLOCKER", "PROVIDER_AUTH");
    answers = { DATACENTER: () => new Promise<ProbeResult>(() => {}), UNLOCKER: () => HEALTHY };
    await startWorker();
    await expect.poll(standing, { timeout: 10_000 }).toEqual(["DATACENTER"]);
  });

  test("W4 two workers ask a supplier once an interval", async () => {
    await quarantine("UNLOCKER", "PROVIDER_AUTH");
    answers = { UNLOCKER: () => failing("PROVIDER_FAILURE") };
    const other = createTestSignals();
    await Promise.all([startWorker({ env: ONE_LOOK }), startWorker({ env: ONE_LOOK, signals: other })]);
    await Promise.all([ran(1), other.reachedTimes("proxy-health.ran", 1)]);
    expect(asked).toHaveLength(1);
  });

  test("O4 a stop cuts a question off, and what it did not answer changes nothing", async () => {
    await quarantine("UNLOCKER", "PROVIDER_AUTH");
    const begun = createGate();
    answers = {
      UNLOCKER: () => {
        begun.open();
        return new Promise<ProbeResult>(() => {});
      },
    };
    const worker = await startWorker({ env: ONE_LOOK });
    await begun.opened;
    const startedAt = performance.now();
    await worker.stop(10_000);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(asked.at(-1)?.signal.aborted).toBe(true);
    expect(await audit()).toHaveLength(1);
  });

  test("after an outage of Postgres it goes on by itself", async () => {
    await using proxy = await startTcpProxy({ target: clone.url });
    answers = { UNLOCKER: () => HEALTHY };
    await startWorker({ env: { SCRAPER_DATABASE_URL: proxy.through(clone.url) } });
    await ran(1);
    await proxy.refuse();
    await signals.reachedTimes("proxy-health.failed", 1);
    await quarantine("UNLOCKER", "PROVIDER_AUTH");
    await proxy.restore();
    await expect.poll(standing, { timeout: 25_000 }).toEqual([]);
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  });
});
