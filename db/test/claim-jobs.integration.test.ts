import { afterAll, beforeEach, expect, test } from "vitest";
import {
  claimJobs,
  deferJobs,
  expireJobs,
  recoverLeases,
  releaseJobs,
  renewLeases,
  resumeDeferredJobs,
  settleJobs,
  sweepPassedHolds,
} from "../src/commands/fetching/index.ts";
import { cancelJob, submitJobs } from "../src/commands/intake/index.ts";
import { createDatabase } from "../src/database.ts";
import { countInFlightByRoute } from "../src/queries/count-in-flight-by-route.ts";
import { countRunningBefore } from "../src/queries/count-running-before.ts";
import { countWaitingJobs } from "../src/queries/count-waiting-jobs.ts";
import { listDueJobs } from "../src/queries/list-due-jobs.ts";
import { OPTIONS, claim, failedRetryably, newJob, openTestDatabase, reserve, succeeded } from "./job-fixtures.ts";

const database = await openTestDatabase();
const sql = database.commands;
const CLAIM = { transport: "HTTP", leaseSeconds: 60, of: "TRUSTED", callerRunningMax: null } as const;
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(async () => {
  await sql`update jobs set status = 'CANCELLED', lease_token = null, lease_until = null, finished_at = clock_timestamp()
            where finished_at is null`;
});

async function submitMany(callerId: string, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 1_000) {
    const jobs = Array.from({ length: Math.min(left, 1_000) }, () => newJob());
    await submitJobs(sql, { callerId, jobs, queuedMax: null });
  }
}

test("J9 another caller's job is in the next claim, whatever 50,000 jobs of one caller wait before it", async () => {
  await submitMany("big", 50_000);
  await submitMany("small", 1);
  const startedAt = performance.now();
  const leases = await claim(database, 2);
  const tookMs = performance.now() - startedAt;
  expect(leases.map((lease) => lease.callerId).toSorted()).toEqual(["big", "small"]);
  console.log(`claim past 50,000 waiting jobs of another caller: ${tookMs.toFixed(1)} ms`);
});

test("J9 with more callers than slots, the ring goes on where the last claim ended", async () => {
  for (const caller of ["a", "b", "c", "d"]) await submitMany(caller, 2);
  const first = await claim(database, 2);
  const second = await claim(database, 2, { afterCaller: "b" });
  expect(first.map((lease) => lease.callerId).toSorted()).toEqual(["a", "b"]);
  expect(second.map((lease) => lease.callerId).toSorted()).toEqual(["c", "d"]);
});

test("J9 with one free slot at a time, every caller gets its turn, the last ones of the ring too", async () => {
  for (const caller of ["a", "b", "c"]) await submitMany(caller, 6);
  let afterCaller = "";
  const taken: string[] = [];
  for (let count = 0; count < 9; count += 1) {
    const batch = await claimJobs(sql, { ...CLAIM, slots: 1, afterCaller });
    afterCaller = batch.lastCaller ?? afterCaller;
    taken.push(...batch.leases.map((lease) => lease.callerId));
  }
  expect(taken.join("")).toBe("abcabcabc");
});

test("J9 slots that callers can't share evenly go to each in turn", async () => {
  for (const caller of ["a", "b", "c"]) await submitMany(caller, 10);
  let afterCaller = "";
  const taken: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    const batch = await claimJobs(sql, { ...CLAIM, slots: 4, afterCaller });
    afterCaller = batch.lastCaller ?? afterCaller;
    taken.push(...batch.leases.map((lease) => lease.callerId));
  }
  expect(taken.join("")).toBe("abcabcabcabc");
});

test("J9 callers at their running bound keep no slot from one that has room", async () => {
  for (const caller of ["a", "b", "c"]) await submitMany(caller, 3);
  const bounded = { callerRunningMax: 1 };
  expect((await claim(database, 2, bounded)).map((lease) => lease.callerId)).toEqual(["a", "b"]);
  expect((await claim(database, 1, bounded)).map((lease) => lease.callerId)).toEqual(["c"]);
  expect(await claim(database, 5, bounded)).toEqual([]);
});

test("J9 the ring has no beginning: a claim from behind its last caller begins with the first", async () => {
  for (const caller of ["a", "b"]) await submitMany(caller, 2);
  const batch = await claimJobs(sql, { ...CLAIM, slots: 3, afterCaller: "b" });
  expect(batch.leases.map((lease) => lease.callerId)).toEqual(["a", "b", "a"]);
  expect(batch.lastCaller).toBe("a");
});

test("of one caller, the job that is due first is claimed first, then the one with the nearer deadline", async () => {
  const at = [3, 1, 2].map((seconds) => newJob({ deadlineSeconds: 100 + seconds }));
  await submitJobs(sql, { callerId: "acme", jobs: at, queuedMax: null });
  await sql`update jobs set due_at = '2020-01-01' where id = any(${at.map((job) => job.id)}::uuid[])`;
  const [lease] = await claim(database, 1);
  expect(lease?.id).toBe(at[1]?.id);
});

test("four claimers at once never take a job twice and leave none", async () => {
  await submitMany("acme", 200);
  const taken: string[] = [];
  const claimAll = async () => {
    for (;;) {
      const leases = await claim(database, 10);
      if (leases.length === 0) return;
      taken.push(...leases.map((lease) => lease.id));
    }
  };
  await Promise.all([claimAll(), claimAll(), claimAll(), claimAll()]);
  expect(taken).toHaveLength(200);
  expect(new Set(taken).size).toBe(200);
});

// With statistics from before the load, the planner was seen to scan the whole table for a settle of 25 rows.
test("hot commands never scan the jobs, whatever the statistics say", async () => {
  await submitMany("acme", 3_000);
  const narrow = createDatabase({
    url: database.url,
    applicationName: "test-plans",
    commandConnections: 1,
    readConnections: 1,
    statementTimeoutMs: 20_000,
  });
  const scans = async () => {
    await narrow.commands`select pg_stat_force_next_flush()`;
    const [row] = await narrow.commands<{ scans: number }[]>`
      select seq_scan::int as scans from pg_stat_user_tables where relname = 'jobs'`;
    return row?.scans;
  };
  const before = await scans();
  const leases = await claim(narrow, 50);
  const reports = leases.slice(0, 25).map((lease, index) => succeeded(lease, index.toString(16).padStart(64, "e")));
  expect(await renewLeases(narrow.commands, leases, 60)).toHaveProperty("size", 50);
  await settleJobs(narrow.commands, reports, OPTIONS);
  await recoverLeases(narrow.commands, { limit: 10, ...OPTIONS });
  await expireJobs(narrow.commands, { limit: 10, ...OPTIONS });
  await listDueJobs(narrow.commands, 10);
  await releaseJobs(narrow.commands, [{ ...leases[30]!, dueInMs: 1 }], OPTIONS);
  await cancelJob(narrow.commands, { id: leases[31]!.id, callerId: null }, OPTIONS);
  await reserve(narrow, leases[32]!, 0, { routeDay: 1 });
  await settleJobs(narrow.commands, [{ ...failedRetryably(leases[32]!), hasReservation: true }], OPTIONS);
  await narrow.commands`insert into host_holds values ('127.0.0.1', clock_timestamp() + interval '2 min')`;
  expect(await claim(narrow, 5)).toEqual([]);
  expect(await deferJobs(narrow.commands, { limit: 10, ...OPTIONS })).toMatchObject({ taken: 10 });
  expect(await resumeDeferredJobs(narrow.commands, { deferredBy: "host:127.0.0.1", limit: 10 })).toBe(10);
  await resumeDeferredJobs(narrow.commands, { deferredBy: "route:DIRECT", limit: 10 });
  await sweepPassedHolds(narrow.commands, { limit: 10 });
  await countWaitingJobs(narrow.commands, { by: "HOST", key: "127.0.0.1" });
  await countWaitingJobs(narrow.commands, { by: "ROUTE", key: "DIRECT" });
  await countRunningBefore(narrow.commands, { token: leases[33]!.token, by: "HOST", key: "127.0.0.1" });
  await countInFlightByRoute(narrow.commands);
  await narrow.commands`delete from host_holds`;
  expect(await scans()).toBe(before);
  await narrow.stop(performance.now() + 1_000);
});
