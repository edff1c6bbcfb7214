import { createDatabase, type Database, listQuarantines, migrate } from "@keble-scraper/db";
import { quarantineRoute } from "@keble-scraper/db/commands/fetching";
import { parseSettings } from "@keble-scraper/service";
import {
  createTestDatabase,
  createTestSignals,
  startCloudflareApi,
  startConnectProxy,
  startUnlockerApi,
  type TestDatabase,
  testRedis,
  type TestSignals,
} from "@keble-scraper/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createProxyHealthWorker } from "../../src/proxy-health/proxy-health-worker.ts";

const CREDENTIALS = { userName: "brd-customer-hl_1a2b-zone-dc1", password: "canary-password" };

let clone: TestDatabase;
let database: Database;
let signals: TestSignals;
let stops: (() => Promise<void>)[];

beforeEach(async () => {
  clone = await createTestDatabase({ migrate });
  signals = createTestSignals();
  stops = [];
  database = createDatabase({
    url: clone.url,
    applicationName: "test",
    commandConnections: 2,
    readConnections: 1,
    statementTimeoutMs: 20_000,
  });
});

afterEach(async () => {
  for (const stop of stops.toReversed()) await stop();
  await database.stop(performance.now() + 1_000);
  await clone[Symbol.asyncDispose]();
});

/** Starts the worker as it is started for real: its probes come from the settings. */
async function startWorker(env: Record<string, string>, probeTimeoutMs = 2_000): Promise<void> {
  const redis = await testRedis();
  const parsed = parseSettings({
    SCRAPER_ENVIRONMENT: "test",
    SCRAPER_LOG_LEVEL: "silent",
    SCRAPER_DATABASE_URL: clone.url,
    SCRAPER_REDIS_URL: redis.url,
    SCRAPER_REDIS_PREFIX: redis.prefix.replaceAll(":", ""),
    SCRAPER_SERVICE_TOKEN: "a-service-token-for-tests",
    SCRAPER_SECRET_KEY: "ab".repeat(32),
    SCRAPER_PROXY_HEALTH_INTERVAL_SECONDS: "0.1",
    ...env,
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  const worker = createProxyHealthWorker(parsed.value, { signals, probeTimeoutMs });
  await worker.start();
  stops.push(() => worker.stop(1_000));
}

async function quarantine(route: "DATACENTER" | "UNLOCKER" | "CLOUDFLARE_RENDER", reason: string): Promise<void> {
  await quarantineRoute(database.commands, {
    route,
    reason,
    nativeCode: null,
    note: null,
    forMs: 900_000,
    by: { actor: "system:test", requestId: null },
  });
}

const standing = async () => (await listQuarantines(database.commands)).map(({ route }) => route);
const lifted = () => expect.poll(standing, { timeout: 10_000 }).toEqual([]);
const looked = (times: number) => signals.reachedTimes("proxy-health.ran", times);

describe("proxy-health asks each supplier by its own protocol", () => {
  test("W4 a proxy that refuses our password keeps its route closed, and opens it once it accepts", async () => {
    let isAccepted = false;
    await using proxy = await startConnectProxy({
      to: 1,
      rule: () => ({ do: "REFUSE", status: isAccepted ? 403 : 407 }),
    });
    await quarantine("DATACENTER", "PROVIDER_AUTH");
    await startWorker({ SCRAPER_DATACENTER_PROXY_URL: proxy.url(CREDENTIALS) });
    await proxy.request(2);
    await looked(2);
    expect(await standing()).toEqual(["DATACENTER"]);
    isAccepted = true;
    await lifted();
  });

  test("W4 a proxy that says nothing is no proof", async () => {
    await using proxy = await startConnectProxy({ to: 1, rule: () => ({ do: "STAY_SILENT" }) });
    await quarantine("DATACENTER", "PROVIDER_AUTH");
    await startWorker({ SCRAPER_DATACENTER_PROXY_URL: proxy.url(CREDENTIALS) }, 200);
    await looked(2);
    expect(proxy.asked.length).toBeGreaterThan(0);
    expect(await standing()).toEqual(["DATACENTER"]);
  });

  test("W4 the unlocker's route opens once its account may make requests and its zone is active", async () => {
    await using api = await startUnlockerApi();
    api.account.canMakeRequests = false;
    await quarantine("UNLOCKER", "PROVIDER_PAYMENT");
    await startWorker({
      SCRAPER_UNLOCKER_URL: api.url,
      SCRAPER_UNLOCKER_API_KEY: api.apiKey,
      SCRAPER_UNLOCKER_ZONE: api.zone,
    });
    await looked(2);
    expect(await standing()).toEqual(["UNLOCKER"]);
    api.account.canMakeRequests = true;
    await lifted();
    expect(api.requests).toEqual([]);
  });

  test("W4 Cloudflare's route opens once its token is good and it renders the smallest page", async () => {
    await using api = await startCloudflareApi();
    api.token.status = "disabled";
    await quarantine("CLOUDFLARE_RENDER", "PROVIDER_AUTH");
    await startWorker({
      SCRAPER_CLOUDFLARE_URL: api.url,
      SCRAPER_CLOUDFLARE_ACCOUNT_ID: api.accountId,
      SCRAPER_CLOUDFLARE_API_TOKEN: api.apiToken,
    });
    await looked(2);
    expect(await standing()).toEqual(["CLOUDFLARE_RENDER"]);
    expect(api.renders).toEqual([]);
    api.token.status = "active";
    await lifted();
    expect(api.renders).toHaveLength(1);
  });
});
