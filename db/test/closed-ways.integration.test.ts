import type { Route } from "@keble-scraper/contract";
import { afterAll, beforeEach, expect, test } from "vitest";
import {
  deferJobs,
  type JobLease,
  quarantineRoute,
  releaseRoute,
  resumeDeferredJobs,
  settleJobs,
  sweepPassedHolds,
} from "../src/commands/fetching/index.ts";
import { type NewJob, submitJobs } from "../src/commands/intake/index.ts";
import { listHostHolds } from "../src/queries/list-host-holds.ts";
import { OPTIONS, claim, claimOne, failedRetryably, newJob, openTestDatabase, submitOne } from "./job-fixtures.ts";

const database = await openTestDatabase();
const sql = database.commands;
const BY = { actor: "system:test", requestId: null };
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(async () => {
  await sql`update jobs set status = 'CANCELLED', lease_token = null, lease_until = null, finished_at = clock_timestamp()
            where finished_at is null`;
  await sql`delete from host_holds`;
  await sql`delete from route_quarantines`;
});

async function submitMany(callerId: string, count: number, overrides: Partial<NewJob> = {}): Promise<void> {
  for (let left = count; left > 0; left -= 1_000) {
    const jobs = Array.from({ length: Math.min(left, 1_000) }, () => newJob(overrides));
    await submitJobs(sql, { callerId, jobs, queuedMax: null });
  }
}

async function hold(hostKey: string, seconds: number): Promise<void> {
  await sql`insert into host_holds (host_key, held_until) values (${hostKey}, clock_timestamp() + make_interval(secs => ${seconds}))
            on conflict (host_key) do update set held_until = excluded.held_until`;
}

function quarantine(route: Route, forMs: number | null = null) {
  return quarantineRoute(sql, { route, reason: "OPERATOR", nativeCode: null, note: null, forMs, by: BY });
}

/** Jobs that are due this millisecond are claimed in the next. */
async function untilAllDue(): Promise<void> {
  await sql`update jobs set due_at = due_at - interval '1 s' where status = 'QUEUED' and due_at > clock_timestamp() - interval '1 s'
            and due_at <= clock_timestamp() + interval '5 ms'`;
}

async function deferredOf(id: string) {
  const [row] = await sql<{ by: string | null; in_seconds: number }[]>`
    select deferred_by as by, extract(epoch from due_at - clock_timestamp())::float8 as in_seconds from jobs where id = ${id}`;
  return row;
}

test("W2 a held host's jobs are not claimed, others of the same caller are, and they are when the hold has passed", async () => {
  const held = await submitOne(database, { hostKey: "slow.example.com" });
  const free = await submitOne(database, { hostKey: "slow.example.com:8443" });
  await hold("slow.example.com", 60);
  await untilAllDue();
  expect((await claim(database)).map((lease) => lease.id)).toEqual([free]);
  await sql`update host_holds set held_until = clock_timestamp() - interval '1 ms'`;
  expect((await claim(database)).map((lease) => lease.id)).toEqual([held]);
});

test("W4 a job of a quarantined route goes by the next one that it listed, and keeps its own for later", async () => {
  await submitOne(database, { routes: ["DATACENTER", "UNLOCKER", "RESIDENTIAL"] });
  await quarantine("DATACENTER");
  const first = await claimOne(database);
  expect(first).toMatchObject({ route: "UNLOCKER", isDiverted: true, isLastRoute: false, routesLeft: 1 });
  await settleJobs(sql, [failedRetryably(first)], OPTIONS);
  await releaseRoute(sql, { route: "DATACENTER", by: BY });
  const second = await claimOne(database);
  expect(second).toMatchObject({ route: "DATACENTER", isDiverted: false, routesLeft: 2 });
  await settleJobs(sql, [failedRetryably(second, { next: "RETRY_NEXT_ROUTE" })], OPTIONS);
  const third = await claimOne(database);
  expect(third).toMatchObject({ route: "UNLOCKER", isDiverted: false, routesLeft: 1 });
});

test("W4 a diverted attempt that asks for the next route gets the one behind its own, and the last has none", async () => {
  const id = await submitOne(database, { routes: ["DATACENTER", "UNLOCKER", "RESIDENTIAL"], attemptBudget: 9 });
  await quarantine("DATACENTER");
  await settleJobs(sql, [failedRetryably(await claimOne(database), { next: "RETRY_NEXT_ROUTE" })], OPTIONS);
  const last = await claimOne(database);
  expect(last).toMatchObject({ route: "RESIDENTIAL", isDiverted: false, isLastRoute: true, routesLeft: 0 });
  const [verdict] = await settleJobs(sql, [failedRetryably(last, { next: "RETRY_NEXT_ROUTE" })], OPTIONS);
  expect(verdict?.ended).toMatchObject({ id, status: "FAILED" });
});

test("W4 a job without an open route waits with its attempt, never by a route it did not list", async () => {
  const id = await submitOne(database, { routes: ["DATACENTER", "UNLOCKER"] });
  await quarantine("DATACENTER");
  await quarantine("UNLOCKER", 60_000);
  await untilAllDue();
  expect(await claim(database)).toEqual([]);
  const [row] = await sql`select attempts_used, status from jobs where id = ${id}`;
  expect(row).toEqual({ attempts_used: 0, status: "QUEUED" });
  await sql`update route_quarantines set quarantined_at = clock_timestamp() - interval '1 hour',
            lifts_at = clock_timestamp() - interval '1 ms' where route = 'UNLOCKER'`;
  expect(await claim(database)).toMatchObject([{ id, route: "UNLOCKER", isDiverted: true }]);
});

test("W4 with a running bound the claim steps over held hosts and quarantined routes too", async () => {
  await submitMany("acme", 3, { hostKey: "slow.example.com" });
  await submitMany("acme", 1, { routes: ["UNLOCKER"] });
  await submitMany("acme", 2, { routes: ["UNLOCKER", "DIRECT"] });
  await hold("slow.example.com", 60);
  await quarantine("UNLOCKER");
  await untilAllDue();
  const leases = await claim(database, 10, { callerRunningMax: 5 });
  expect(leases.map((lease) => lease.route)).toEqual(["DIRECT", "DIRECT"]);
});

const BLOCKED: Record<string, { overrides: Partial<NewJob>; block(): Promise<unknown> }> = {
  "a held host": {
    overrides: { hostKey: "slow.example.com" },
    block: () => hold("slow.example.com", 250),
  },
  "a quarantined route": { overrides: { routes: ["UNLOCKER"] }, block: () => quarantine("UNLOCKER") },
};

// The claim of every caller walks the ring of callers: what it does for one of them, all others wait for.
test.each([
  ["a held host", 20_000],
  ["a quarantined route", 5_000],
] as const)(
  "J9 one caller's jobs of %s, %i of them, keep no slot from another caller, before and after they are deferred",
  async (name, count) => {
    await submitMany("big", count, BLOCKED[name]?.overrides);
    await submitMany("small", 40);
    await BLOCKED[name]?.block();
    await untilAllDue();
    expect((await claim(database, 1)).map((lease) => lease.callerId)).toEqual(["small"]);
    expect(await claim(database, 10)).toHaveLength(10);
    let moved = 0;
    let batches = 0;
    for (let last = 1_000; last >= 1_000; batches += 1) {
      last = (await deferJobs(sql, { limit: 1_000, ...OPTIONS })).taken;
      moved += last;
    }
    expect(moved).toBe(count);
    expect(batches).toBe(count / 1_000 + 1);
    expect(await claim(database, 10)).toHaveLength(10);
    const [row] =
      await sql`select count(*)::int as due from jobs where status = 'QUEUED' and due_at <= clock_timestamp()`;
    expect(row).toEqual({ due: 19 });
  },
);

test("J9 a claim looks at a bounded number of a caller's jobs that it can't take", async () => {
  await submitMany("big", 5_000, { hostKey: "slow.example.com" });
  await submitMany("big", 1);
  await hold("slow.example.com", 250);
  await untilAllDue();
  expect(await claim(database)).toEqual([]);
  while ((await deferJobs(sql, { limit: 1_000, ...OPTIONS })).taken === 1_000);
  expect(await claim(database)).toHaveLength(1);
});

test("W2 deferred jobs of a held host are due when its hold ends; a claim clears why they waited", async () => {
  const id = await submitOne(database, { hostKey: "slow.example.com" });
  const other = await submitOne(database);
  await hold("slow.example.com", 30);
  await untilAllDue();
  expect(await deferJobs(sql, { limit: 100, ...OPTIONS })).toMatchObject({ taken: 1, ended: [] });
  const deferred = await deferredOf(id);
  expect(deferred?.by).toBe("host:slow.example.com");
  expect(deferred?.in_seconds).toBeGreaterThan(28);
  expect(deferred?.in_seconds).toBeLessThan(31);
  expect(await deferredOf(other)).toMatchObject({ by: null });
  expect(await deferJobs(sql, { limit: 100, ...OPTIONS })).toMatchObject({ taken: 0, ended: [] });
  await sql`update host_holds set held_until = clock_timestamp() - interval '1 s'`;
  await sql`update jobs set due_at = clock_timestamp() - interval '1 s' where id = ${id}`;
  const leases = await claim(database);
  expect(leases.map((lease) => lease.id).toSorted()).toEqual([id, other].toSorted());
  expect(await deferredOf(id)).toMatchObject({ by: null });
});

test("J5 a job whose host is held past its deadline ends at once with DEADLINE_EXCEEDED; one whose route is shut that long waits", async () => {
  const over = await submitOne(database, { hostKey: "slow.example.com", deadlineSeconds: 20 });
  const suspect = await submitOne(database, { hostKey: "slow.example.com", deadlineSeconds: 20 });
  const later = await submitOne(database, { hostKey: "slow.example.com" });
  const shut = await submitOne(database, { routes: ["UNLOCKER"], deadlineSeconds: 20 });
  await sql`update jobs set suspected_at = clock_timestamp() where id = ${suspect}`;
  await hold("slow.example.com", 60);
  await quarantine("UNLOCKER", 60_000);
  await untilAllDue();
  const { taken, ended } = await deferJobs(sql, { limit: 100, ...OPTIONS });
  expect(taken).toBe(4);
  expect(ended.map(({ id, status }) => [id, status])).toEqual([
    [over, "FAILED"],
    [suspect, "FAILED"],
  ]);
  const rows = await sql`
    select id, failure ->> 'code' as code, attempts_used, attempt_number, deferred_by from jobs
    where id = any (${[over, suspect]}) order by created_at`;
  const end = { code: "DEADLINE_EXCEEDED", attempts_used: 0, attempt_number: 0, deferred_by: null };
  expect(rows).toEqual([
    { id: over, ...end },
    { id: suspect, ...end },
  ]);
  expect(await deferredOf(later)).toMatchObject({ by: "host:slow.example.com" });
  expect(await deferredOf(shut)).toMatchObject({ by: "route:UNLOCKER" });
});

test("W4 jobs deferred by quarantined routes are due when the first opens, and at once when any of them is released", async () => {
  const both = await submitOne(database, { routes: ["UNLOCKER", "DATACENTER"] });
  const one = await submitOne(database, { routes: ["UNLOCKER"] });
  await quarantine("DATACENTER", 120_000);
  await quarantine("UNLOCKER");
  await untilAllDue();
  expect(await deferJobs(sql, { limit: 100, ...OPTIONS })).toMatchObject({ taken: 2, ended: [] });
  expect(await deferredOf(both)).toMatchObject({ by: "route:DATACENTER,UNLOCKER" });
  expect((await deferredOf(both))?.in_seconds).toBeLessThan(121);
  expect(await deferredOf(one)).toMatchObject({ by: "route:UNLOCKER" });
  expect((await deferredOf(one))?.in_seconds).toBeGreaterThan(3_500);
  expect(await releaseRoute(sql, { route: "DATACENTER", by: BY })).toBe(true);
  expect(await claimOne(database)).toMatchObject({ id: both, route: "DATACENTER", isDiverted: true });
  expect(await claim(database)).toEqual([]);
  expect(await releaseRoute(sql, { route: "UNLOCKER", by: BY })).toBe(true);
  expect(await claimOne(database)).toMatchObject({ id: one, route: "UNLOCKER" });
  expect(await releaseRoute(sql, { route: "UNLOCKER", by: BY })).toBe(false);
});

test("W4 suspects are deferred too, and a job that a release resumes keeps an earlier due time", async () => {
  const id = await submitOne(database, { routes: ["UNLOCKER"] });
  await sql`update jobs set suspected_at = clock_timestamp(), due_at = clock_timestamp() - interval '1 s' where id = ${id}`;
  await quarantine("UNLOCKER");
  expect(await claim(database, 1, { of: "SUSPECTS" })).toEqual([]);
  expect(await deferJobs(sql, { limit: 100, ...OPTIONS })).toMatchObject({ taken: 1, ended: [] });
  await sql`update jobs set due_at = '2026-01-01' where id = ${id}`;
  expect(await resumeDeferredJobs(sql, { deferredBy: "route:UNLOCKER", limit: 100 })).toBe(1);
  const [row] = await sql`select due_at from jobs where id = ${id}`;
  expect(row?.["due_at"]).toEqual(new Date("2026-01-01"));
});

test("W4 a release that was cut off after its commit is finished by the sweep, in bounded batches", async () => {
  await submitMany("acme", 5, { routes: ["UNLOCKER"] });
  await submitMany("acme", 2, { routes: ["RESIDENTIAL"] });
  await quarantine("UNLOCKER");
  await quarantine("RESIDENTIAL");
  await untilAllDue();
  expect(await deferJobs(sql, { limit: 100, ...OPTIONS })).toMatchObject({ taken: 7, ended: [] });
  await sql`delete from route_quarantines where route = 'UNLOCKER'`;
  expect((await sweepPassedHolds(sql, { limit: 3 })).resumed).toBe(3);
  expect((await sweepPassedHolds(sql, { limit: 3 })).resumed).toBe(2);
  expect((await sweepPassedHolds(sql, { limit: 3 })).resumed).toBe(0);
  await untilAllDue();
  expect(await claim(database)).toHaveLength(5);
});

test("the sweep deletes what has passed and leaves what holds", async () => {
  await hold("past.example.com", -120);
  await hold("now.example.com", 60);
  await sql`insert into admission_clocks (key, next_at_ms) values
    ('host:past', extract(epoch from clock_timestamp()) * 1000 - 700000), ('host:now', extract(epoch from clock_timestamp()) * 1000)`;
  await quarantine("UNLOCKER", 60_000);
  await quarantine("DIRECT", 60_000);
  await sql`update route_quarantines set quarantined_at = clock_timestamp() - interval '2 h', lifts_at = clock_timestamp() - interval '1 h'
            where route = 'UNLOCKER'`;
  expect(await sweepPassedHolds(sql, { limit: 10 })).toMatchObject({ holds: 1, clocks: 1, quarantines: 1 });
  expect(await sweepPassedHolds(sql, { limit: 10 })).toMatchObject({ holds: 0, clocks: 0, quarantines: 0 });
  expect(await listHostHolds(sql, ["now.example.com", "past.example.com", "now.example.com"])).toMatchObject([
    { hostKey: "now.example.com" },
  ]);
});

test("W2 a settle's hold is there with its attempt, is never shortened, and a stale settle writes none", async () => {
  await submitMany("acme", 3, { hostKey: "slow.example.com" });
  await untilAllDue();
  const [first, second, third] = (await claim(database, 3)) as [JobLease, JobLease, JobLease];
  const report = (lease: JobLease, ms: number) => failedRetryably(lease, { hold: { hostKey: "slow.example.com", ms } });
  const remaining = async () => (await listHostHolds(sql, ["slow.example.com"]))[0]?.remainingMs ?? 0;
  await settleJobs(sql, [{ ...report(third, 900_000), token: crypto.randomUUID() }], OPTIONS);
  expect(await remaining()).toBe(0);
  await settleJobs(sql, [report(first, 60_000), report(third, 30_000)], OPTIONS);
  expect(await remaining()).toBeGreaterThan(58_000);
  expect(await remaining()).toBeLessThanOrEqual(60_001);
  await settleJobs(sql, [report(second, 1_000)], OPTIONS);
  expect(await remaining()).toBeGreaterThan(57_000);
});
