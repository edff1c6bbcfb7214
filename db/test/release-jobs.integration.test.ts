import { localFailure } from "@keble-scraper/contract";
import { afterAll, beforeEach, expect, test } from "vitest";
import {
  type Booking,
  type JobLease,
  recoverLeases,
  type Release,
  releaseJobs,
  settleJobs,
} from "../src/commands/fetching/index.ts";
import { findJob } from "../src/queries/find-job.ts";
import { listAttempts } from "../src/queries/list-attempts.ts";
import { OPTIONS, claim, claimOne, failedRetryably, openTestDatabase, submitOne } from "./job-fixtures.ts";

const database = await openTestDatabase();
const sql = database.commands;
const BOOKING: Booking = { hostKey: "a.example.com", hostAtMs: 1_796_000_000_123.5, route: "DIRECT", routeAtMs: null };
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(async () => {
  await sql`update jobs set status = 'CANCELLED', lease_token = null, lease_until = null, finished_at = clock_timestamp()
            where finished_at is null`;
});

async function release(lease: JobLease, how: Omit<Release, "id" | "token">) {
  return releaseJobs(sql, [{ id: lease.id, token: lease.token, ...how }], OPTIONS);
}

/** Milliseconds from now until a job is due, and from then until its deadline. */
async function dueOf(id: string) {
  const [row] = await sql<{ in_ms: number; before_deadline_ms: number }[]>`
    select extract(epoch from due_at - clock_timestamp())::float8 * 1000 as in_ms,
           extract(epoch from deadline_at - due_at)::float8 * 1000 as before_deadline_ms
    from jobs where id = ${id} and status = 'QUEUED'`;
  if (row === undefined) throw new Error("the job does not wait");
  return row;
}

const due = (id: string) => sql`update jobs set due_at = clock_timestamp() - interval '1 ms' where id = ${id}`;

test("W1 a job whose horizon is at its deadline ends at once with DEADLINE_EXCEEDED, its attempt given back", async () => {
  const id = await submitOne(database, { deadlineSeconds: 60 });
  const [ended] = await release(await claimOne(database), { dueInMs: 5_000, horizonInMs: 60_000 });
  expect(ended).toMatchObject({ id, status: "FAILED" });
  const job = await findJob(database.reads, id, null);
  expect(job).toMatchObject({ failure: { code: "DEADLINE_EXCEEDED" }, limits: { attemptsUsed: 0 } });
  expect((await listAttempts(database.reads, { jobId: id, afterId: null, limit: 5 })).items).toEqual([]);
});

test("W1 a job whose horizon is before its deadline waits, due a second before it however far it is spread", async () => {
  const id = await submitOne(database, { deadlineSeconds: 60 });
  expect(await release(await claimOne(database), { dueInMs: 600_000, horizonInMs: 58_000 })).toEqual([]);
  expect((await dueOf(id)).before_deadline_ms).toBe(1_000);
});

test("J3 a release is due at least a second ahead, and no sooner than it asked", async () => {
  const id = await submitOne(database);
  await release(await claimOne(database), { dueInMs: 0, horizonInMs: 0 });
  const soon = await dueOf(id);
  expect(soon.in_ms).toBeGreaterThan(900);
  expect(soon.in_ms).toBeLessThanOrEqual(1_001);
  await due(id);
  await release(await claimOne(database), { dueInMs: 20_000, horizonInMs: 10 });
  expect((await dueOf(id)).in_ms).toBeGreaterThan(19_000);
});

test("J5 a job that can't be due before its deadline ends, rather than wait for it", async () => {
  const id = await submitOne(database, { deadlineSeconds: 1 });
  const [ended] = await release(await claimOne(database), { dueInMs: 100, horizonInMs: 1 });
  expect(ended).toMatchObject({ id, status: "FAILED" });
});

test("W1 booked times stay with the job over releases and claims, until its attempt ends", async () => {
  const id = await submitOne(database);
  const first = await claimOne(database);
  expect(first.booking).toBeNull();
  await release(first, { dueInMs: 0, booking: BOOKING });
  await due(id);
  const second = await claimOne(database);
  expect(second.booking).toEqual(BOOKING);
  await release(second, { dueInMs: 0 });
  await due(id);
  const third = await claimOne(database);
  expect(third.booking).toEqual(BOOKING);
  await settleJobs(sql, [failedRetryably(third)], OPTIONS);
  await due(id);
  const fourth = await claimOne(database);
  expect(fourth.booking).toBeNull();
  await release(fourth, { dueInMs: 0, booking: BOOKING });
  await due(id);
  await release(await claimOne(database), { dueInMs: 0, booking: null });
  await due(id);
  expect((await claimOne(database)).booking).toBeNull();
});

test("W1 a lost attempt's booked times go with it", async () => {
  const id = await submitOne(database);
  await release(await claimOne(database), { dueInMs: 0, booking: BOOKING });
  await due(id);
  await claimOne(database);
  await sql`update jobs set lease_until = clock_timestamp() - interval '1 ms' where id = ${id}`;
  await recoverLeases(sql, { limit: 10, ...OPTIONS });
  expect((await claimOne(database, { of: "SUSPECTS" })).booking).toBeNull();
});

test("W3 a capped route is left behind: the next one is due at once, and behind the last the job ends COST_CAP_EXCEEDED", async () => {
  const id = await submitOne(database, { routes: ["DATACENTER", "UNLOCKER"], costCapMicros: 5 });
  expect(await release(await claimOne(database), { dueInMs: 9_999, next: "NEXT_ROUTE" })).toEqual([]);
  const second = await claimOne(database);
  expect(second).toMatchObject({ id, route: "UNLOCKER", attemptsUsed: 1, attemptNumber: 1, isLastRoute: true });
  const failure = localFailure("COST_CAP_EXCEEDED", { message: "The route's daily cap is spent." });
  const [ended] = await release(second, { dueInMs: 0, next: "NEXT_ROUTE", failure });
  expect(ended).toMatchObject({ id, status: "FAILED" });
  expect(await findJob(database.reads, id, null)).toMatchObject({
    failure,
    limits: { attemptsUsed: 0, costMicros: 0 },
  });
});

test("J2 a release of a lost lease changes nothing", async () => {
  const id = await submitOne(database);
  const lease = await claimOne(database);
  expect(await release({ ...lease, token: crypto.randomUUID() }, { dueInMs: 0, next: "NEXT_ROUTE" })).toEqual([]);
  expect(await findJob(database.reads, id, null)).toMatchObject({ status: "RUNNING" });
  expect(await claim(database)).toEqual([]);
});
