import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDatabase, type Database, migrate } from "@keble-scraper/db";
import { claimJobs, type JobLease, takePaces } from "@keble-scraper/db/commands/fetching";
import { type NewJob, submitJobs } from "@keble-scraper/db/commands/intake";
import { type RunningServer, startRedis } from "@keble-scraper/local-servers";
import { createLogger, SYSTEM_CLOCK } from "@keble-scraper/service";
import { createTestDatabase, startTcpProxy, type TestDatabase, untilBlocked } from "@keble-scraper/testkit";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { type Admission, type AdmissionParts, createAdmission } from "../src/admission/admission.ts";
import { EARLY_MS } from "../src/admission/admission-key.ts";
import { createAdmissionSql } from "../src/admission/admission-sql.ts";
import { type Clocks, createClocks, type Turn } from "../src/admission/clocks.ts";
import { createRedisScripts, type RedisScripts } from "../src/admission/redis-scripts.ts";
import { hopTo, jobOf, peakOf } from "./admission-hops.ts";

const logger = createLogger({ name: "t", level: "silent" });
const PREFIX = "{admission-fault}";
const FIFTY_MS = 22;
const FIFTY_PACE_MS = 21.2;
const WAIT_MS = 5_000;
/** Nothing is refused, so that every answer is a booking. */
const STEP = { key: "route:DIRECT", intervalMs: FIFTY_MS, patienceMs: 120_000, bookedAtMs: null } as const;

let testDatabase: TestDatabase;
let database: Database;
let folder: string;
let server: RunningServer;
let closers: (() => unknown)[] = [];

beforeAll(async () => {
  testDatabase = await createTestDatabase({ migrate });
  database = createDatabase({
    url: testDatabase.url,
    applicationName: "test",
    commandConnections: 4,
    readConnections: 1,
    statementTimeoutMs: 20_000,
  });
});
afterAll(async () => {
  await database.stop(performance.now() + 1_000);
  await testDatabase[Symbol.asyncDispose]();
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "admission-fault-"));
  server = await openRedis();
  await database.commands`delete from admission_clocks`;
});
afterEach(async () => {
  await Promise.all(closers.map((close) => close()));
  closers = [];
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

function openRedis(port?: number): Promise<RunningServer> {
  const path = process.env["PATH"] ?? "";
  const where = { path, directory: join(folder, "redis"), logFile: join(folder, "redis.log") };
  return startRedis(port === undefined ? where : { ...where, port });
}

async function openClocks(redisUrl = server.url): Promise<Clocks & { readonly redis: RedisScripts }> {
  const redis = createRedisScripts({ redisUrl, logger });
  await redis.start(new AbortController().signal);
  closers.push(() => redis.stop(0));
  const takeInSql = createAdmissionSql(database.commands).takeAdmission;
  return { redis, ...createClocks({ redis, prefix: PREFIX, takeInSql, voidMs: WAIT_MS, clock: SYSTEM_CLOCK }) };
}

async function openAdmission(
  more: Partial<AdmissionParts["settings"]> = {},
  routes: AdmissionParts["routes"] = {},
  sql: AdmissionParts["sql"] = createAdmissionSql(database.commands),
): Promise<Admission> {
  const settings = { waitMs: WAIT_MS, hostRequestsPerSecond: 1_000, hostConcurrency: 1_000, isForAllowed: false };
  const admission = createAdmission({
    redis: { redisUrl: server.url, prefix: PREFIX, logger },
    sql,
    settings: { ...settings, stickySessionMs: 60_000, ...more },
    routes,
    slots: 100,
    leaseMs: 60_000,
  });
  await admission.component.start(new AbortController().signal);
  closers.push(() => admission.component.stop(0));
  return admission;
}

function leastGap(turns: readonly Turn[]): number {
  const times = turns.map(({ atMs }) => atMs).toSorted((one, other) => one - other);
  return Math.min(...times.slice(1).map((atMs, index) => atMs - times[index]!));
}

async function claim(count: number, hostKey: string): Promise<readonly JobLease[]> {
  const jobs = Array.from({ length: count }, () => newJob(hostKey));
  await submitJobs(database.commands, { callerId: "acme", jobs, queuedMax: null });
  const batch = await claimJobs(database.commands, {
    transport: "HTTP",
    slots: count,
    leaseSeconds: 60,
    afterCaller: "",
    of: "TRUSTED",
    callerRunningMax: null,
  });
  return batch.leases;
}

function newJob(hostKey: string): NewJob {
  return {
    id: crypto.randomUUID(),
    idempotencyKey: null,
    requestSha256: "00".repeat(32),
    hostKey,
    capture: null,
    egress: null,
    target: { url: `http://${hostKey}/`, method: "GET", headers: {} },
    transport: "HTTP",
    routes: ["DIRECT"],
    freshness: "NO_CACHE",
    accept: "SUCCESS_ONLY",
    contentTypes: null,
    robots: "IGNORE",
    labels: {},
    attemptBudget: 3,
    maxBodyBytes: 10_000,
    costCapMicros: 0,
    deadlineSeconds: 60,
    callbackEndpoint: null,
  };
}

function admit(admission: Admission, lease: JobLease, hop = hopTo(lease.target.url), claimedAtMs = performance.now()) {
  const deadlineAtMs = performance.now() + lease.untilDeadlineMs;
  return admission.forJob({ ...lease, claimedAtMs, deadlineAtMs }, 60_000).admit(hop);
}

it("W1 with Redis killed the same clock goes on in Postgres within a moment, and in Redis when it is back, without a burst", async () => {
  const clocks = await Promise.all(Array.from({ length: 4 }, () => openClocks()));
  const take = (count: number): Promise<Turn[]> =>
    Promise.all(Array.from({ length: count }, (_, index) => clocks[index % 4]!.take(STEP)));
  const turns = await take(40);
  const { port } = server;
  process.kill(server.pid, "SIGKILL");
  const startedMs = performance.now();
  turns.push(...(await take(40)));
  expect(performance.now() - startedMs).toBeLessThan(5_000);
  expect(clocks.map(({ redis }) => redis.isUp())).toEqual([false, false, false, false]);
  turns.push(...(await take(40)));
  await server.exited;
  server = await openRedis(port);
  await expect.poll(() => clocks.every(({ redis }) => redis.isUp()), { timeout: 10_000 }).toBe(true);
  turns.push(...(await take(40)));
  const plain = new Redis(server.url);
  expect(await plain.exists(`${PREFIX}:admission:clock:route:DIRECT`)).toBe(1);
  plain.disconnect();
  expect(turns.every(({ isBooked }) => isBooked)).toBe(true);
  // Redis and Postgres read one machine's clock, so their bookings are on one scale. A clock that is less than 250 ms behind
  // what somebody saw does not count as lost: so much may be booked twice at each of the two changes, and the pace keeps it
  // from being sent at once.
  expect(peakOf(turns.map(({ atMs }) => atMs))).toBeLessThanOrEqual(46 + 2 * 12);
});

it("W1 in Postgres too what is refused moves no clock, and a booked time is used as it is until it is void", async () => {
  await server.stop();
  const clocks = await openClocks();
  const first = await clocks.take({ ...STEP, patienceMs: 1_000 });
  const many = await Promise.all(Array.from({ length: 100 }, () => clocks.take({ ...STEP, patienceMs: 1_000 })));
  const booked = [first, ...many.filter(({ isBooked }) => isBooked)];
  expect(booked.length).toBeLessThan(70);
  expect(leastGap(booked)).toBeGreaterThan(FIFTY_MS - 0.01);
  const lastMs = Math.max(...booked.map(({ atMs }) => atMs));
  const carried = await clocks.take({ ...STEP, patienceMs: 0, bookedAtMs: first.atMs });
  expect(carried).toMatchObject({ isBooked: true, atMs: first.atMs });
  const next = await clocks.take(STEP);
  expect(next.atMs).toBeCloseTo(lastMs + FIFTY_MS, 1);
  const isVoid = await clocks.take({ ...STEP, bookedAtMs: first.nowMs - WAIT_MS - 1_000 });
  expect(isVoid.atMs).toBeCloseTo(next.atMs + FIFTY_MS, 1);
});

it("W1 a Redis that says nothing any more holds a request for a second, once, and no request after it", async () => {
  await using proxy = await startTcpProxy({ target: server.url });
  const clocks = await openClocks(proxy.through(server.url));
  const turns = [await clocks.take(STEP)];
  proxy.blackHole();
  const startedMs = performance.now();
  turns.push(...(await Promise.all([clocks.take(STEP), clocks.take(STEP)])));
  expect(performance.now() - startedMs).toBeLessThan(2_000);
  const afterMs = performance.now();
  turns.push(await clocks.take(STEP));
  expect(performance.now() - afterMs).toBeLessThan(1_000);
  await proxy.restore();
  await expect.poll(() => clocks.redis.isUp(), { timeout: 10_000 }).toBe(true);
  turns.push(await clocks.take(STEP));
  expect(leastGap(turns)).toBeGreaterThan(FIFTY_MS - 1);
});

it("W1 while Redis is away requests that wake late never bunch either, on a pace that nobody has begun yet", async () => {
  await server.stop();
  const routes = { DIRECT: { requestsPerSecond: 50, concurrency: null } };
  const workers = await Promise.all(Array.from({ length: 4 }, () => openAdmission({}, routes)));
  const startedMs = performance.now();
  const sentMs = await Promise.all(
    Array.from({ length: 40 }, async (_, index) => {
      const booking = { hostKey: null, hostAtMs: null, route: "DIRECT", routeAtMs: Date.now() - 500 + index };
      const job = jobOf({ hostKey: "127.0.0.1:8080", booking });
      const verdict = await workers[index % 4]!.forJob(job, 60_000).admit(hopTo("http://127.0.0.1:8080/"));
      expect(verdict.kind).toBe("GO");
      return performance.now() - startedMs;
    }),
  );
  const inTurn = sentMs.toSorted((one, other) => one - other);
  for (const [index, ms] of inTurn.entries()) expect(ms).toBeGreaterThan(index * FIFTY_PACE_MS - EARLY_MS - 2);
  expect(inTurn.at(-1)).toBeLessThan(39 * FIFTY_MS + 5_000);
});

it("W2 while Redis is away both paces are taken or none, under any number of callers, and none waits for ever", async () => {
  const adapter = createAdmissionSql(database.commands);
  const host = { key: "host:pace.example.com", paceMs: 300 } as const;
  const route = { key: "route:DIRECT", paceMs: 60_000 } as const;
  const nextMs = async (key: string): Promise<number> => {
    const [row] = await database.commands<{ next_at_ms: number }[]>`
      select next_at_ms from admission_clocks where key = ${`pace:${key}`}`;
    return row?.next_at_ms ?? 0;
  };
  expect(await adapter.takePaces([host])).toBeNull();
  const hostMs = await nextMs(host.key);
  const early = await adapter.takePaces([host, route]);
  expect(early?.key).toBe(host.key);
  expect(early?.inMs).toBeLessThanOrEqual(300 - EARLY_MS);
  // The route was free, and was not taken.
  expect([await nextMs(host.key), await nextMs(route.key)]).toEqual([hostMs, 0]);
  await database.commands`delete from admission_clocks`;
  const many = await Promise.all(
    Array.from({ length: 24 }, (_, index) => adapter.takePaces(index % 2 === 0 ? [host, route] : [route, host])),
  );
  expect(many.filter((refusal) => refusal === null)).toHaveLength(1);
  // Who met a row in the making asks again in a millisecond, whichever row it was; all others wait for the route.
  const told = many.flatMap((refusal) => (refusal !== null && refusal.inMs > 1 ? [refusal.key] : []));
  expect(told).toEqual(told.map(() => route.key));
  expect(await nextMs(host.key)).toBeLessThan(Date.now() + 24 * 300);
});

it("W1 while Redis is away a pace that two begin at once lets one of them go", async () => {
  const paces = [{ key: "pace:route:DIRECT", intervalMs: 60_000 }];
  const sql = database.commands;
  const second = await sql.begin(async (tx) => {
    expect(await takePaces(tx, paces, EARLY_MS)).toBeNull();
    const answer = takePaces(sql, paces, EARLY_MS);
    await untilBlocked(sql);
    return { answer };
  });
  expect(await second.answer).toMatchObject({ key: "pace:route:DIRECT" });
});

it("W2 while Redis is away the slots of a host are its running jobs, the oldest first", async () => {
  await server.stop();
  const sql = createAdmissionSql(database.commands);
  let looks = 0;
  const countRunningBefore: typeof sql.countRunningBefore = (key, holder) => {
    looks += 1;
    return sql.countRunningBefore(key, holder);
  };
  const admission = await openAdmission({ hostConcurrency: 2 }, {}, { ...sql, countRunningBefore });
  const leases = await claim(3, "slots.example.com");
  const hops = leases.map(({ target }) => hopTo(target.url));
  const verdicts = leases.map((lease, index) => admit(admission, lease, hops[index]));
  const first = await Promise.race(verdicts.map(async (verdict, index) => ({ index, verdict: await verdict })));
  expect(first.verdict.kind).toBe("GO");
  await expect.poll(() => admission.state).toMatchObject({ held: 2, waiting: 1 });
  // However often it looks.
  const soFar = looks;
  await expect.poll(() => looks, { timeout: 5_000 }).toBeGreaterThan(soFar + 3);
  expect(admission.state).toMatchObject({ held: 2, waiting: 1 });
  // The first of the two ends, its job with it: the third has its turn.
  const done = leases[first.index]!;
  await database.commands`
    update jobs set status = 'QUEUED', lease_token = null, lease_until = null, due_at = now() + interval '1 hour'
    where id = ${done.id}`;
  const all = await Promise.all(verdicts);
  expect(all.map(({ kind }) => kind)).toEqual(["GO", "GO", "GO"]);
});

it("W2 slots taken while Redis was away are announced to it as soon as it is back", async () => {
  const { port } = server;
  await server.stop();
  const admission = await openAdmission({ hostConcurrency: 2 });
  const [lease] = await claim(1, "announced.example.com");
  expect((await admit(admission, lease!)).kind).toBe("GO");
  server = await openRedis(port);
  const plain = new Redis(server.url);
  const key = `${PREFIX}:admission:slots:host:announced.example.com`;
  await expect.poll(() => plain.zcard(key), { timeout: 10_000 }).toBe(1);
  plain.disconnect();
});

it("W2 a host that any worker was told to leave alone is not asked, with or without Redis", async () => {
  const admission = await openAdmission();
  const [one, two] = await claim(2, "held.example.com");
  await database.commands`
    insert into host_holds (host_key, held_until) values ('held.example.com', now() + interval '7 seconds')`;
  const longAgoMs = performance.now() - 1_000;
  for (const lease of [one!, two!]) {
    const verdict = await admit(admission, lease, hopTo(lease.target.url), longAgoMs);
    expect(verdict.kind).toBe("WAIT");
    if (verdict.kind === "WAIT") expect(verdict.wait.horizonMs).toBeGreaterThan(5_000);
    await server.stop();
  }
});

it("a worker starts without Redis and meets it later", async () => {
  const { port } = server;
  await server.stop();
  const clocks = await openClocks();
  const turns = [await clocks.take(STEP)];
  server = await openRedis(port);
  await expect.poll(() => clocks.redis.isUp(), { timeout: 10_000 }).toBe(true);
  turns.push(await clocks.take(STEP));
  expect(leastGap(turns)).toBeGreaterThan(FIFTY_MS - 1);
});
