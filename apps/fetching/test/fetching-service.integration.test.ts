import { once } from "node:events";
import { createServer } from "node:net";
import type { Principal, Route } from "@keble-scraper/contract";
import { createDatabase, migrate } from "@keble-scraper/db";
import { claimJobs } from "@keble-scraper/db/commands/fetching";
import { type NewJob, submitJobs } from "@keble-scraper/db/commands/intake";
import { parseSettings } from "@keble-scraper/service";
import { createTestDatabase, startTcpProxy } from "@keble-scraper/testkit";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { createFetching } from "../src/app.ts";
import type { FetchingContext } from "../src/context.ts";
import { createCatalogue } from "../src/route-catalogue.ts";
import { fetchingRouter } from "../src/router.ts";

const testDatabase = await createTestDatabase({ migrate });
const database = createDatabase({
  url: testDatabase.url,
  applicationName: "test",
  commandConnections: 4,
  readConnections: 2,
  statementTimeoutMs: 20_000,
});
const sql = database.commands;

function settingsOf(more: Record<string, string> = {}) {
  const parsed = parseSettings({
    SCRAPER_ENVIRONMENT: "test",
    SCRAPER_LOG_LEVEL: "silent",
    SCRAPER_DATABASE_URL: testDatabase.url,
    SCRAPER_REDIS_URL: "redis://127.0.0.1:1",
    SCRAPER_SERVICE_TOKEN: "a-service-token-for-tests",
    SCRAPER_SECRET_KEY: "ab".repeat(32),
    SCRAPER_UNLOCKER_API_KEY: "key-of-the-test",
    SCRAPER_UNLOCKER_ZONE: "unblock",
    SCRAPER_UNLOCKER_DAILY_CAP_MICROS: "60000",
    SCRAPER_CALLER_MONTHLY_CAP_MICROS: "90000",
    ...more,
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return parsed.value;
}

const woken: Route[] = [];
const context: FetchingContext = {
  database,
  catalogue: createCatalogue(settingsOf()),
  callerCaps: { dayMicros: null, monthMicros: 90_000 },
  auditDays: 1.5,
  wake: (route) => void woken.push(route),
};
const caller = fetchingRouter.createCaller({
  ...context,
  requestId: "request-of-the-test",
  deadlineAt: Date.now() + 600_000,
  signal: new AbortController().signal,
  logger: { error: () => undefined } as never,
});

const OPERATOR: Principal = { keyId: crypto.randomUUID(), kind: "OPERATOR", callerId: null, scopes: [] };
const SERVICE: Principal = { keyId: crypto.randomUUID(), kind: "SERVICE", callerId: "acme", scopes: ["jobs:read"] };
const UNLOCKER = { principal: OPERATOR, route: "UNLOCKER" } as const;

beforeEach(async () => {
  woken.length = 0;
  await sql`delete from route_quarantines`;
  await sql`delete from budgets`;
});
afterAll(async () => {
  await database.stop(performance.now() + 1_000);
  await testDatabase[Symbol.asyncDispose]();
});

async function infoOf(route: Route) {
  const answer = await caller.getRouteInfos({ principal: OPERATOR });
  if (!answer.ok) throw new Error("refused");
  return answer.value.items.find((info) => info.route === route)!;
}

function actions() {
  return sql`select action, actor, request_id as "requestId", subject,
                    round(extract(epoch from expires_at - occurred_at) / 86400, 2)::float8 as days
             from audit_events order by id`;
}

async function submit(overrides: Partial<NewJob> = {}, callerId = "acme"): Promise<string> {
  const id = crypto.randomUUID();
  const job: NewJob = {
    id,
    idempotencyKey: null,
    requestSha256: "00".repeat(32),
    hostKey: "shop.example.com",
    capture: null,
    egress: null,
    target: { url: "https://shop.example.com/", method: "GET", headers: {} },
    transport: "HTTP",
    routes: ["UNLOCKER"],
    freshness: "NO_CACHE",
    accept: "SUCCESS_ONLY",
    contentTypes: null,
    robots: "IGNORE",
    labels: {},
    attemptBudget: 3,
    maxBodyBytes: 1_000,
    costCapMicros: 10_000,
    deadlineSeconds: 60,
    callbackEndpoint: null,
    ...overrides,
  };
  const [verdict] = await submitJobs(sql, { callerId, jobs: [job], queuedMax: null });
  if (verdict?.kind !== "ACCEPTED") throw new Error("not accepted");
  return id;
}

describe("a quarantine by an operator", () => {
  test("closes the route until it is released; both are audited with their key, and waiting jobs are woken", async () => {
    const before = (await actions()).length;
    const closed = await caller.quarantineRoute({ ...UNLOCKER, input: { note: "the bill" } });
    expect(closed).toMatchObject({
      ok: true,
      value: {
        route: "UNLOCKER",
        available: false,
        health: "QUARANTINED",
        quarantine: { reason: "OPERATOR", note: "the bill", by: OPERATOR.keyId, until: null },
      },
    });
    expect((await caller.listRoutes()).find(({ route }) => route === "UNLOCKER")).toMatchObject({
      health: "QUARANTINED",
      reason: "quarantined until it is released",
    });
    const opened = await caller.releaseRoute(UNLOCKER);
    expect(opened).toMatchObject({ ok: true, value: { available: true, health: "HEALTHY", quarantine: null } });
    expect(woken).toEqual(["UNLOCKER"]);
    const by = { actor: OPERATOR.keyId, requestId: "request-of-the-test", subject: "route:UNLOCKER", days: 1.5 };
    expect((await actions()).slice(before)).toMatchObject([
      { ...by, action: "route.quarantined" },
      { ...by, action: "route.released" },
    ]);
  });

  test("has the end it is given, and a second one replaces note and end", async () => {
    const first = await caller.quarantineRoute({ ...UNLOCKER, input: { seconds: 3_600 } });
    const quarantine = first.ok ? first.value.quarantine : null;
    const lastsMs = Date.parse(quarantine?.until ?? "") - Date.parse(quarantine?.since ?? "");
    expect(Math.abs(lastsMs - 3_600_000)).toBeLessThan(1_000);
    const until = new Date(Date.now() + 60_000).toISOString();
    const second = await caller.quarantineRoute({ ...UNLOCKER, input: { note: "shorter", until } });
    expect(second).toMatchObject({ ok: true, value: { quarantine: { note: "shorter" } } });
    const stands = second.ok ? Date.parse(second.value.quarantine?.until ?? "") : 0;
    expect(Math.abs(stands - Date.parse(until))).toBeLessThan(10_000);
  });

  test("whose end is past changes nothing", async () => {
    const answer = await caller.quarantineRoute({ ...UNLOCKER, input: { until: "2020-01-01T00:00:00Z" } });
    expect(answer).toMatchObject({ ok: false, failure: { code: "INVALID_REQUEST", details: [{ path: "until" }] } });
    expect((await infoOf("UNLOCKER")).health).toBe("HEALTHY");
  });

  test("of an open route's release changes nothing and is no action", async () => {
    const before = (await actions()).length;
    expect(await caller.releaseRoute(UNLOCKER)).toMatchObject({ ok: true, value: { health: "HEALTHY" } });
    expect([(await actions()).length, woken]).toEqual([before, []]);
  });

  test("is an operator's to set, whatever came through the gateway", async () => {
    const forbidden = { ok: false, failure: { code: "FORBIDDEN" } };
    expect(await caller.quarantineRoute({ ...UNLOCKER, principal: SERVICE, input: {} })).toMatchObject(forbidden);
    expect(await caller.releaseRoute({ ...UNLOCKER, principal: SERVICE })).toMatchObject(forbidden);
    expect(await caller.getRouteInfos({ principal: SERVICE })).toMatchObject(forbidden);
    expect(await caller.listBudgets({ principal: SERVICE, query: { limit: 50 } })).toMatchObject(forbidden);
    expect((await infoOf("UNLOCKER")).health).toBe("HEALTHY");
  });
});

describe("a route's figures", () => {
  test("are what runs by it now and what it spent in this day and month", async () => {
    await sql`
      insert into budgets (scope, name, period, starts_on, settled_micros, reserved_micros) values
        ('ROUTE', 'UNLOCKER', 'DAY', (clock_timestamp() at time zone 'UTC')::date, 3000, 1500),
        ('ROUTE', 'UNLOCKER', 'DAY', (clock_timestamp() at time zone 'UTC')::date - 1, 7, 7),
        ('ROUTE', 'UNLOCKER', 'MONTH', date_trunc('month', clock_timestamp() at time zone 'UTC')::date, 9000, 1500),
        ('CALLER', 'UNLOCKER', 'DAY', (clock_timestamp() at time zone 'UTC')::date, 1, 1)`;
    await submit();
    let leases;
    do {
      ({ leases } = await claimJobs(sql, {
        transport: "HTTP",
        slots: 1,
        leaseSeconds: 60,
        afterCaller: "",
        of: "TRUSTED",
        callerRunningMax: null,
      }));
    } while (leases.length === 0);
    const info = await infoOf("UNLOCKER");
    expect(info).toMatchObject({
      inFlight: 1,
      price: { unit: "PER_REQUEST", micros: 1_500 },
      spend: {
        day: { settledMicros: 3_000, reservedMicros: 1_500, capMicros: 60_000 },
        month: { settledMicros: 9_000, reservedMicros: 1_500, capMicros: null },
      },
    });
    expect(await infoOf("DIRECT")).toMatchObject({ inFlight: 0, price: null, spend: null });
  });
});

describe("budgets", () => {
  test("are those of the current periods with the caps of the settings, page by page", async () => {
    await sql`
      insert into budgets (scope, name, period, starts_on, settled_micros, overrun_micros)
      select s.scope, s.name, p.period, p.starts_on, 5, 1
      from (values ('ROUTE', 'UNLOCKER'), ('CALLER', 'acme')) s (scope, name),
           (values ('DAY', (clock_timestamp() at time zone 'UTC')::date), ('DAY', '2020-02-01'::date),
                   ('MONTH', date_trunc('month', clock_timestamp() at time zone 'UTC')::date), ('MONTH', '2020-02-01'::date)
           ) p (period, starts_on)`;
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const query = { limit: 1, ...(cursor === undefined ? {} : { cursor }) };
      const page = await caller.listBudgets({ principal: OPERATOR, query });
      if (!page.ok) throw new Error("refused");
      seen.push(
        ...page.value.items.map(({ scope, name, period, capMicros }) => `${scope} ${name} ${period} ${capMicros}`),
      );
      cursor = page.value.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(seen).toEqual([
      "CALLER acme DAY null",
      "CALLER acme MONTH 90000",
      "ROUTE UNLOCKER DAY 60000",
      "ROUTE UNLOCKER MONTH null",
    ]);
    const past = await caller.listBudgets({
      principal: OPERATOR,
      query: { limit: 50, startsOn: "2020-02-01", period: "MONTH", scope: "ROUTE" },
    });
    expect(past).toMatchObject({
      ok: true,
      value: { items: [{ name: "UNLOCKER", startsOn: "2020-02-01", settledMicros: 5, overrunMicros: 1 }] },
    });
  });

  test("refuse a cursor that is not theirs", async () => {
    const query = { limit: 50, cursor: "bm90LWEtY3Vyc29y" };
    expect(await caller.listBudgets({ principal: OPERATOR, query })).toMatchObject({
      ok: false,
      failure: { code: "INVALID_REQUEST", details: [{ path: "cursor" }] },
    });
  });
});

describe("usage", () => {
  async function attempt(jobId: string, ordinal: number, route: string, costMicros: number, outcome = "SUCCEEDED") {
    await sql`
      insert into attempts (id, job_id, outcome, ordinal, lease_token, route, failure, body_bytes, wire_bytes, cost_micros, started_at, finished_at)
      values (${uuidv7()}, ${jobId}, ${outcome}, ${ordinal}, gen_random_uuid(), ${route},
              ${outcome === "FAILED" ? sql.json({}) : null}, 10, 12, ${costMicros},
              clock_timestamp(), clock_timestamp())`;
  }

  test("is summed by route or label, a service's own caller's only, whatever it asks for", async () => {
    const mine = await submit({ labels: { batch: "a" } }, "usage-mine");
    const bare = await submit({}, "usage-mine");
    const theirs = await submit({ labels: { batch: "a" } }, "usage-theirs");
    await attempt(mine, 1, "DIRECT", 0, "FAILED");
    await attempt(mine, 2, "UNLOCKER", 1_500);
    await attempt(bare, 1, "UNLOCKER", 1_500);
    await attempt(theirs, 1, "UNLOCKER", 40_000);
    const service = { ...SERVICE, callerId: "usage-mine" };
    const byRoute = await caller.getUsage({
      principal: service,
      query: { groupBy: "route", callerId: "usage-theirs" },
    });
    expect(byRoute).toMatchObject({
      ok: true,
      value: {
        groupBy: "route",
        items: [
          { route: "UNLOCKER", attempts: 2, succeeded: 2, failed: 0, bodyBytes: 20, wireBytes: 24, costMicros: 3_000 },
          { route: "DIRECT", attempts: 1, succeeded: 0, failed: 1, costMicros: 0 },
        ],
        total: { attempts: 3, succeeded: 2, failed: 1, costMicros: 3_000 },
      },
    });
    const byLabel = await caller.getUsage({ principal: service, query: { groupBy: "label:batch" } });
    expect(byLabel).toMatchObject({
      value: {
        items: [
          { label: "a", attempts: 2, costMicros: 1_500 },
          { label: null, attempts: 1, costMicros: 1_500 },
        ],
      },
    });
    const all = await caller.getUsage({ principal: OPERATOR, query: { groupBy: "route" } });
    expect(all).toMatchObject({ value: { total: { costMicros: 43_000 } } });
    const one = await caller.getUsage({ principal: OPERATOR, query: { groupBy: "route", callerId: "usage-theirs" } });
    expect(one).toMatchObject({ value: { total: { attempts: 1, costMicros: 40_000 } } });
  });

  test("of a time that is over 92 days is refused", async () => {
    const query = { groupBy: "route", from: "2020-01-01T00:00:00Z" };
    expect(await caller.getUsage({ principal: SERVICE, query })).toMatchObject({
      ok: false,
      failure: { code: "INVALID_REQUEST", details: [{ path: "from" }] },
    });
  });
});

describe("the service", () => {
  test("is down without the database, and back with it; without Redis it is only degraded", async () => {
    await using proxy = await startTcpProxy({ target: testDatabase.url });
    const port = await freePort();
    const settings = settingsOf({
      SCRAPER_DATABASE_URL: proxy.through(testDatabase.url),
      SCRAPER_FETCHING_URL: `http://127.0.0.1:${port}`,
    });
    const service = createFetching({
      ...settings,
      internal: { ...settings.internal, ports: { ...settings.internal.ports, fetching: port } },
    });
    await service.start();
    try {
      const ready = async () => {
        const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
        return ((await answer.json()) as { status: string }).status;
      };
      await expect.poll(ready, { timeout: 10_000 }).toBe("degraded");
      await proxy.refuse();
      await expect.poll(ready, { timeout: 10_000 }).toBe("down");
      await proxy.restore();
      await expect.poll(ready, { timeout: 10_000 }).toBe("degraded");
    } finally {
      await service.stop(0);
    }
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
