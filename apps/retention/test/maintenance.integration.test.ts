import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDatabase, type Database, findEvent, findJob, listAttempts, migrate } from "@keble-scraper/db";
import { claimDeliveries, registerEndpoint } from "@keble-scraper/db/commands/callbacks";
import { claimJobs } from "@keble-scraper/db/commands/fetching";
import { cancelJob, type NewJob, submitJobs } from "@keble-scraper/db/commands/intake";
import { claimTestStore } from "@keble-scraper/db/testing";
import {
  type Container,
  createBell,
  createBellListener,
  createHints,
  createLogger,
  HINT_CHANNELS,
  parseSettings,
} from "@keble-scraper/service";
import {
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
import { createBeat, createMaintenanceWorker, createRetention } from "../src/app.ts";
import type { RetentionSettings } from "../src/settings.ts";

const logger = createLogger({ name: "test", level: "silent" });
const never = new AbortController().signal;
const DAY_MS = 86_400_000;
/** Ids that sort after each other, as a process makes them. */
let made = 0;
const newId = () => `01900000-0000-7000-8000-${String((made += 1)).padStart(12, "0")}`;

let clone: TestDatabase;
let redis: TestRedis;
let database: Database;
let redisClient: Redis;
let signals: TestSignals;
let cleanups: (() => Promise<void>)[];
let folder: string;

beforeEach(async () => {
  clone = await createTestDatabase({ migrate });
  folder = await mkdtemp(join(tmpdir(), "keble-retention-"));
  redis = await testRedis();
  redisClient = new Redis(redis.url);
  signals = createTestSignals();
  cleanups = [];
  database = createDatabase({
    url: clone.url,
    applicationName: "test",
    commandConnections: 4,
    readConnections: 2,
    statementTimeoutMs: 20_000,
  });
});

afterEach(async () => {
  for (const cleanup of cleanups.toReversed()) {
    await cleanup();
  }
  await database.stop(performance.now() + 1_000);
  const left = await redisClient.keys(`{${prefixName()}}*`);
  if (left.length > 0) {
    await redisClient.del(left);
  }
  redisClient.disconnect();
  await clone[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const prefixName = () => redis.prefix.replaceAll(":", "");
const keyOf = (name: string) => `{${prefixName()}}:${name}`;

function settings(env: Record<string, string> = {}): RetentionSettings {
  const parsed = parseSettings({
    SCRAPER_ENVIRONMENT: "test",
    SCRAPER_LOG_LEVEL: "silent",
    SCRAPER_DATABASE_URL: clone.url,
    SCRAPER_REDIS_URL: redis.url,
    SCRAPER_REDIS_PREFIX: prefixName(),
    SCRAPER_SERVICE_TOKEN: "a-service-token-for-tests",
    SCRAPER_SECRET_KEY: "ab".repeat(32),
    SCRAPER_MAINTENANCE_INTERVAL_SECONDS: "0.2",
    SCRAPER_ABORT_GRACE_MS: "200",
    SCRAPER_INTERNAL_PORT: "0",
    SCRAPER_STATE_DIRECTORY: folder,
    ...env,
  });
  if (!parsed.ok) {
    throw new Error(JSON.stringify(parsed.faults));
  }
  return parsed.value;
}

async function run(container: Container): Promise<Container> {
  await container.start();
  cleanups.push(() => container.stop(5_000));
  return container;
}

async function startWorker(env: Record<string, string> = {}, own: TestSignals = signals): Promise<Container> {
  await claimTestStore(settings(env), clone);
  return run(createMaintenanceWorker(settings(env), { signals: own }));
}

function newJob(overrides: Partial<NewJob> = {}): NewJob {
  return {
    id: newId(),
    idempotencyKey: null,
    requestSha256: "00".repeat(32),
    hostKey: "127.0.0.1",
    capture: null,
    egress: null,
    target: { url: "https://shop.example.com/p/1", method: "GET", headers: {} },
    transport: "HTTP",
    routes: ["DIRECT"],
    freshness: "NO_CACHE",
    accept: "SUCCESS_ONLY",
    contentTypes: null,
    robots: "RESPECT",
    labels: {},
    attemptBudget: 3,
    maxBodyBytes: 1_000_000,
    costCapMicros: 0,
    deadlineSeconds: 300,
    callbackEndpoint: null,
    ...overrides,
  };
}

async function submit(overrides: Partial<NewJob> = {}): Promise<string> {
  const job = newJob(overrides);
  const [verdict] = await submitJobs(database.commands, { callerId: "acme", jobs: [job], queuedMax: null });
  if (verdict?.kind !== "ACCEPTED") {
    throw new Error("not accepted");
  }
  return job.id;
}

/** Claims everything that is due, as a worker that is then killed. */
async function claimAndDie(leaseSeconds = 60): Promise<number> {
  const { leases } = await claimJobs(database.commands, {
    transport: "HTTP",
    slots: 50,
    leaseSeconds,
    afterCaller: "",
    of: "TRUSTED",
    callerRunningMax: null,
  });
  return leases.length;
}

async function ledger(id: string): Promise<string[]> {
  const page = await listAttempts(database.reads, { jobId: id, afterId: null, limit: 50 });
  return page.items.map((attempt) => attempt.outcome);
}

const stateOf = async (id: string) => (await findJob(database.reads, id, null))?.status;

async function registerReceiver(): Promise<{ readonly id: string; readonly name: string }> {
  const id = newId();
  const name = `orders-${made}`;
  const answer = await registerEndpoint(
    database.commands,
    {
      id,
      callerId: "acme",
      name,
      url: "https://hooks.example.com/in",
      events: null,
      attemptBudget: 3,
      timeoutMs: 15_000,
      maxConcurrency: 100,
      secret: { keyId: "0a1b2c3d", ciphertext: Buffer.from("sealed") },
    },
    { actor: "system:test", requestId: "req-1" },
  );
  if (!answer.ok) {
    throw new Error(answer.failure.code);
  }
  return { id, name };
}

async function endWithEvent(endpoint: string): Promise<string> {
  const id = await submit({ callbackEndpoint: endpoint });
  const ended = await cancelJob(database.commands, { id, callerId: null }, { jobRetentionMs: 90 * DAY_MS });
  if (ended?.eventId === undefined || ended.eventId === null) {
    throw new Error("no event");
  }
  return ended.eventId;
}

describe("maintenance, by itself", () => {
  test("J4 a dead worker's job is due again, its attempt LOST, and its bell is rung", async () => {
    const id = await submit();
    expect(await claimAndDie(0)).toBe(1);
    await startWorker();
    await signals.reachedTimes("maintenance.ran", 1);
    expect(await ledger(id)).toEqual(["LOST"]);
    expect(await stateOf(id)).toBe("QUEUED");
    const entries = await redisClient.hvals(keyOf("fetch:jobs"));
    expect(entries.map((entry) => (JSON.parse(entry) as { data: unknown }).data)).toContainEqual({
      transport: "HTTP",
      jobId: id,
    });
  });

  test("J4 a store that is away when maintenance starts holds up no recovery, and is waited for", async () => {
    await claimTestStore(settings(), clone);
    const { store } = settings().artifacts;
    if (store.kind !== "LOCAL") throw new Error("the default is a local store");
    await rename(store.directory, `${store.directory}.away`);
    await writeFile(store.directory, "not a directory");
    const id = await submit();
    expect(await claimAndDie(0)).toBe(1);
    const worker = createMaintenanceWorker(settings(), { signals });
    cleanups.push(() => worker.stop(5_000));
    const starting = worker.start();
    await signals.reachedTimes("maintenance.ran", 1);
    expect(await ledger(id)).toEqual(["LOST"]);
    await rm(store.directory);
    await rename(`${store.directory}.away`, store.directory);
    await starting;
    await signals.reachedTimes("store-upkeep.ran", 1);
  });

  test("A4 a store that nobody claimed ends the start, and nothing goes on behind it", async () => {
    const worker = createMaintenanceWorker(settings(), { signals });
    await expect(worker.start()).rejects.toMatchObject({ name: "FenceRefused", reason: "NOT_CLAIMED" });
    const left = await database.commands`
      select 1 from pg_stat_activity where datname = current_database() and application_name = 'keble-worker-maintenance'`;
    expect(left).toHaveLength(0);
  });

  test("J4 a live worker's lease is left alone", async () => {
    const id = await submit();
    await claimAndDie(60);
    await startWorker();
    await signals.reachedTimes("maintenance.ran", 2);
    expect(await ledger(id)).toEqual([]);
    expect(await stateOf(id)).toBe("RUNNING");
  });

  test("J4 two maintenance workers end an expired lease once", async () => {
    const ids: string[] = [];
    for (let each = 0; each < 40; each += 1) {
      ids.push(await submit());
    }
    await claimAndDie(0);
    const other = createTestSignals();
    await Promise.all([startWorker(), startWorker({}, other)]);
    await Promise.all([signals.reachedTimes("maintenance.ran", 2), other.reachedTimes("maintenance.ran", 2)]);
    const lost = await Promise.all(ids.map((id) => ledger(id)));
    expect(lost).toEqual(ids.map(() => ["LOST"]));
  });

  test("J5 a waiting job ends at its deadline, long before a tick, and whoever waits is told", async () => {
    const hints = createHints({ redisUrl: redis.url, prefix: `{${prefixName()}}`, logger });
    await hints.start(never);
    cleanups.push(() => hints.stop(performance.now()));
    const told: string[] = [];
    hints.subscribe(HINT_CHANNELS.jobsEnded, (ids) => void told.push(...ids));
    await startWorker({ SCRAPER_MAINTENANCE_INTERVAL_SECONDS: "600" });
    await signals.reachedTimes("maintenance.ran", 1);
    const id = await submit({ deadlineSeconds: 2 });
    await expect.poll(() => stateOf(id), { timeout: 10_000 }).toBe("FAILED");
    const job = await findJob(database.reads, id, null);
    expect(job?.failure).toMatchObject({ kind: "LOCAL", code: "DEADLINE_EXCEEDED" });
    const lateMs = Date.parse(String(job?.finishedAt)) - Date.parse(String(job?.limits.deadlineAt));
    expect(lateMs).toBeGreaterThanOrEqual(0);
    expect(lateMs).toBeLessThan(5_000);
    await expect.poll(() => told).toContain(id);
  });

  test("J5 a running job is left until its abort grace is over", async () => {
    const id = await submit({ deadlineSeconds: 1 });
    await claimAndDie(60);
    await startWorker({ SCRAPER_ABORT_GRACE_MS: "1000" });
    await expect.poll(() => stateOf(id), { timeout: 10_000 }).toBe("FAILED");
    const job = await findJob(database.reads, id, null);
    const lateMs = Date.parse(String(job?.finishedAt)) - Date.parse(String(job?.limits.deadlineAt));
    expect(lateMs).toBeGreaterThanOrEqual(1_000);
    expect(lateMs).toBeLessThan(6_000);
    expect(await ledger(id)).toEqual(["LOST"]);
  });

  test("C2 a delivery whose worker died is due again, and its bell is rung", async () => {
    const endpoint = await registerReceiver();
    const eventId = await endWithEvent(endpoint.name);
    const batch = await claimDeliveries(database.commands, { slots: 1, leaseSeconds: 0, afterEndpointId: null });
    expect(batch.leases).toHaveLength(1);
    await startWorker();
    await signals.reachedTimes("maintenance.ran", 1);
    const event = await findEvent(database.reads, eventId, null);
    expect(event?.state).toBe("PENDING");
    await expect.poll(() => redisClient.llen(keyOf("callbacks:waiting"))).toBe(1);
  });

  test("C3 deliveries that a closed endpoint left behind become dead letters", async () => {
    const endpoint = await registerReceiver();
    const eventId = await endWithEvent(endpoint.name);
    await database.commands`update callback_endpoints set disabled_at = now(), disabled_reason = 'OPERATOR' where id = ${endpoint.id}`;
    await startWorker();
    await signals.reachedTimes("maintenance.ran", 1);
    const event = await findEvent(database.reads, eventId, null);
    expect(event?.state).toBe("DEAD_LETTER");
  });

  test("J8 every due job is announced, up to what a bell takes", async () => {
    const ids: string[] = [];
    for (let each = 0; each < 25; each += 1) ids.push(await submit());
    await startWorker({ SCRAPER_MAINTENANCE_INTERVAL_SECONDS: "600", SCRAPER_PUBLISH_CONCURRENCY: "3" });
    await signals.reachedTimes("maintenance.ran", 1);
    expect(await rungFor("fetch")).toEqual(new Set(ids));
  });
});

/** Why a job waits, and whether it is due. */
async function waitOf(id: string): Promise<{ deferredBy: string | null; isDue: boolean }> {
  const [row] = await database.commands<{ deferredBy: string | null; isDue: boolean }[]>`
    select deferred_by as "deferredBy", due_at <= clock_timestamp() as "isDue" from jobs where id = ${id}`;
  if (row === undefined) throw new Error("no such job");
  return { ...row };
}

/** The ids that wait at a bell, once each: an entry may be doubled. Null where a ring named none. */
async function rungFor(bell: "fetch" | "render"): Promise<Set<string | null>> {
  const entries = await redisClient.hvals(keyOf(`${bell}:jobs`));
  return new Set(entries.map((entry) => (JSON.parse(entry) as { data: { jobId?: string } }).data.jobId ?? null));
}

async function quarantine(route: "DIRECT" | "LOCAL_RENDER", minutes: number): Promise<void> {
  await database.commands`
    insert into route_quarantines (route, reason, actor, quarantined_at, lifts_at)
    values (${route}, 'PROVIDER_AUTH', 'system:test', now() - interval '1 day', now() + make_interval(mins => ${minutes}))
    on conflict (route) do update set lifts_at = excluded.lifts_at`;
}

describe("maintenance of what is held and closed", () => {
  test("W2 jobs of a held host are moved out of the claims' way, and not rung for; others are", async () => {
    const held = await submit({ hostKey: "held.example" });
    const free = await submit({ hostKey: "free.example" });
    await database.commands`insert into host_holds values ('held.example', now() + interval '1 minute')`;
    await startWorker({ SCRAPER_MAINTENANCE_INTERVAL_SECONDS: "600" });
    await signals.reachedTimes("maintenance.ran", 1);
    expect(await waitOf(held)).toEqual({ deferredBy: "host:held.example", isDue: false });
    expect(await waitOf(free)).toEqual({ deferredBy: null, isDue: true });
    expect(await rungFor("fetch")).toEqual(new Set([free]));
  });

  test("W4 jobs without an open route wait, and are due again once a quarantine has passed", async () => {
    const id = await submit({ routes: ["DIRECT"] });
    await quarantine("DIRECT", 10);
    await startWorker();
    await expect.poll(() => waitOf(id), { timeout: 10_000 }).toEqual({ deferredBy: "route:DIRECT", isDue: false });
    await quarantine("DIRECT", -1);
    await expect.poll(() => waitOf(id), { timeout: 10_000 }).toEqual({ deferredBy: null, isDue: true });
    await expect.poll(() => rungFor("fetch"), { timeout: 10_000 }).toContain(id);
  });

  // The announced jobs are those that are due longest, up to a bound: jobs that are due just now may not be among them.
  test("W4 render workers hear of resumed jobs although a thousand others are due", async () => {
    const others = Array.from({ length: 1_000 }, () => newJob());
    await submitJobs(database.commands, { callerId: "acme", jobs: others, queuedMax: null });
    const id = await submit({ transport: "RENDER", routes: ["LOCAL_RENDER"], capture: "DOM" });
    await database.commands`
      update jobs set deferred_by = 'route:LOCAL_RENDER', due_at = now() + interval '1 hour' where id = ${id}`;
    await startWorker({ SCRAPER_MAINTENANCE_INTERVAL_SECONDS: "600" });
    await signals.reachedTimes("maintenance.ran", 1);
    expect(await waitOf(id)).toEqual({ deferredBy: null, isDue: true });
    await expect.poll(() => rungFor("render"), { timeout: 10_000 }).toEqual(new Set([null]));
  });

  test("W2 holds and quarantines that have passed go", async () => {
    await database.commands`insert into host_holds values ('a.example', now() - interval '2 minutes')`;
    await quarantine("DIRECT", -2);
    await startWorker();
    const rows = () => database.commands`
      select host_key from host_holds union all select route from route_quarantines`;
    await expect.poll(async () => (await rows()).length, { timeout: 10_000 }).toBe(0);
  });
});

test("R2 a tick purges what has expired, as many rows of a kind in a minute as the setting says, and leaves the rest", async () => {
  const ids = [await submit(), await submit(), await submit(), await submit()];
  const kept = ids.pop() ?? "";
  for (const id of ids) await cancelJob(database.commands, { id, callerId: null }, { jobRetentionMs: 0 });
  await cancelJob(database.commands, { id: kept, callerId: null }, { jobRetentionMs: DAY_MS });
  await database.commands`
    select case when extract(second from clock_timestamp()) > 57
                then pg_sleep_until(date_trunc('minute', clock_timestamp()) + interval '1 minute') end`;
  await startWorker({ SCRAPER_PURGE_ROWS_PER_MINUTE: "2" });
  await signals.reachedTimes("maintenance.ran", 3);
  expect(await database.commands`select count(*)::int as count from jobs`).toMatchObject([{ count: 2 }]);
  await database.commands`update purge_turn set minute = minute - interval '1 minute'`;
  await expect.poll(() => database.commands`select id from jobs`, { timeout: 5_000 }).toMatchObject([{ id: kept }]);
});

describe("maintenance, when parts are away", () => {
  test("without Redis it recovers all the same", async () => {
    const id = await submit();
    await claimAndDie(0);
    const worker = await startWorker({ SCRAPER_REDIS_URL: "redis://127.0.0.1:1" });
    await signals.reachedTimes("maintenance.ran", 1);
    expect(await ledger(id)).toEqual(["LOST"]);
    const wakeup = worker.checks.filter((check) => check.name === "wakeup");
    expect(await Promise.all(wakeup.map((check) => check.check()))).toEqual(["degraded", "degraded"]);
  });

  test("after an outage of Postgres it goes on by itself", async () => {
    await using proxy = await startTcpProxy({ target: clone.url });
    await startWorker({ SCRAPER_DATABASE_URL: proxy.through(clone.url) });
    await signals.reachedTimes("maintenance.ran", 1);
    await proxy.refuse();
    const id = await submit();
    await claimAndDie(0);
    await proxy.restore();
    await expect.poll(() => ledger(id), { timeout: 25_000 }).toEqual(["LOST"]);
    for (const cleanup of cleanups.splice(0).toReversed()) {
      await cleanup();
    }
  });
});

describe("beat", () => {
  test("rings maintenance, which runs then and not only at its interval", async () => {
    await startWorker({ SCRAPER_MAINTENANCE_INTERVAL_SECONDS: "600" });
    await signals.reachedTimes("maintenance.ran", 1);
    const before = signals.points.filter((point) => point === "maintenance.ran").length;
    await run(createBeat(settings(), { signals }));
    await signals.reachedTimes("beat.ran", 3);
    await signals.reachedTimes("maintenance.ran", before + 2);
    expect(signals.points.filter((point) => point === "maintenance.ran").length).toBeGreaterThanOrEqual(before + 2);
  });

  test("without a maintenance worker its bells stay bounded", async () => {
    const bell = createBell({ redisUrl: redis.url, prefix: `{${prefixName()}}`, logger });
    await bell.start(never);
    cleanups.push(() => bell.stop(performance.now()));
    await Promise.all(Array.from({ length: 1_001 }, () => bell.publish("maintenance", {})));
    await run(createBeat(settings({ SCRAPER_MAINTENANCE_INTERVAL_SECONDS: "0.05" }), { signals }));
    await signals.reachedTimes("beat.ran", 10);
    expect(await redisClient.llen(keyOf("maintenance:waiting"))).toBeLessThan(1_005);
    const heard = createBellListener({
      redisUrl: redis.url,
      prefix: `{${prefixName()}}`,
      kind: "maintenance",
      onRing: () => undefined,
      logger,
    });
    await heard.start(never);
    cleanups.push(() => heard.stop(performance.now()));
    await expect.poll(() => redisClient.llen(keyOf("maintenance:waiting")), { timeout: 10_000 }).toBeLessThan(10);
  });
});

test("the service starts, answers and stops without a database", async () => {
  const container = createRetention(settings());
  await container.start();
  await container.stop(0);
  expect(container.name).toBe("retention");
});
