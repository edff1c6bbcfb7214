import { afterAll, beforeEach, expect, test } from "vitest";
import { expireJobs, recoverLeases, releaseJobs, renewLeases, settleJobs } from "../src/commands/fetching/index.ts";
import { cancelJob, submitJobs } from "../src/commands/intake/index.ts";
import { findJob } from "../src/queries/find-job.ts";
import { listAttempts } from "../src/queries/list-attempts.ts";
import {
  OPTIONS,
  claim,
  claimOne,
  failedRetryably,
  newJob,
  openTestDatabase,
  submitOne,
  succeeded,
} from "./job-fixtures.ts";

const database = await openTestDatabase();
const sql = database.commands;
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(async () => {
  await sql`update jobs set lease_until = null, lease_token = null, status = 'CANCELLED', finished_at = clock_timestamp() where finished_at is null`;
});

async function ledger(jobId: string) {
  const page = await listAttempts(database.reads, { jobId, afterId: null, limit: 50 });
  return page.items.map((attempt) => attempt.outcome);
}

test("a settled success is terminal with its artifact, its ledger and its hash", async () => {
  const id = await submitOne(database);
  const lease = await claimOne(database);
  expect(lease).toMatchObject({ id, attemptNumber: 1, attemptsUsed: 1, route: "DIRECT", isLastRoute: true });
  const [verdict] = await settleJobs(sql, [succeeded(lease)], OPTIONS);
  expect(verdict).toMatchObject({
    token: lease.token,
    verdict: "SETTLED",
    ended: { id, status: "SUCCEEDED", eventId: null },
  });
  const job = await findJob(database.reads, id, "acme");
  expect(job).toMatchObject({ status: "SUCCEEDED", failure: null, result: { sha256: "ab".repeat(32), sizeBytes: 5 } });
  expect(await ledger(id)).toEqual(["SUCCEEDED"]);
});

test("J2 of a group with wrong tokens, only the held leases are written", async () => {
  for (let count = 0; count < 25; count += 1) await submitOne(database);
  const leases = await claim(database, 25);
  expect(leases).toHaveLength(25);
  const reports = leases.map((lease, index) =>
    index < 3
      ? { ...succeeded(lease), token: crypto.randomUUID() }
      : succeeded(lease, index.toString(16).padStart(64, "0")),
  );
  const verdicts = await settleJobs(sql, reports, OPTIONS);
  expect(verdicts.filter((row) => row.verdict === "SETTLED")).toHaveLength(22);
  expect(verdicts.filter((row) => row.verdict === "STALE")).toHaveLength(3);
  const written = await sql`select 1 from attempts where job_id = any(${leases.map((lease) => lease.id)}::uuid[])`;
  expect(written).toHaveLength(22);
  const running =
    await sql`select 1 from jobs where id = any(${leases.map((lease) => lease.id)}::uuid[]) and finished_at is null`;
  expect(running).toHaveLength(3);
  const again = await settleJobs(sql, reports.slice(3), OPTIONS);
  expect(again.every((row) => row.verdict === "STALE")).toBe(true);
});

test("J2 an expired lease settles, renews and releases nothing", async () => {
  const id = await submitOne(database);
  const lease = await claimOne(database);
  await sql`update jobs set lease_until = clock_timestamp() - interval '1 ms' where id = ${id}`;
  const [verdict] = await settleJobs(sql, [succeeded(lease)], OPTIONS);
  expect(verdict?.verdict).toBe("STALE");
  expect(await renewLeases(sql, [lease], 60)).toEqual(new Set());
  await releaseJobs(sql, [{ ...lease, dueInMs: 0 }], OPTIONS);
  expect(await findJob(database.reads, id, null)).toMatchObject({ status: "RUNNING", limits: { attemptsUsed: 1 } });
  expect(await ledger(id)).toEqual([]);
});

test("J4 a lost lease is recorded as LOST and the job ends on its own budget", async () => {
  const id = await submitOne(database, { attemptBudget: 2 });
  for (const [index, of] of (["TRUSTED", "SUSPECTS"] as const).entries()) {
    const lease = await claimOne(database, { of });
    expect(lease.attemptNumber).toBe(index + 1);
    await sql`update jobs set lease_until = clock_timestamp() - interval '1 ms' where id = ${id}`;
    const { recovered, ended } = await recoverLeases(sql, { limit: 10, ...OPTIONS });
    expect(recovered).toBe(1);
    expect(ended).toHaveLength(index);
  }
  const job = await findJob(database.reads, id, null);
  expect(job).toMatchObject({ status: "FAILED", failure: { code: "WORKER_LOST" } });
  expect(await ledger(id)).toEqual(["LOST", "LOST"]);
});

test("J3 a release gives the count back and leaves no line in the ledger", async () => {
  const id = await submitOne(database);
  const lease = await claimOne(database);
  await releaseJobs(sql, [{ ...lease, dueInMs: 10 }], OPTIONS);
  const job = await findJob(database.reads, id, null);
  expect(job).toMatchObject({ status: "WAITING", limits: { attemptsUsed: 0 } });
  expect(await ledger(id)).toEqual([]);
});

test("J5 a waiting job ends at its deadline with DEADLINE_EXCEEDED", async () => {
  const id = await submitOne(database, { deadlineSeconds: -1 });
  const ended = await expireJobs(sql, { limit: 10, ...OPTIONS });
  expect(ended).toMatchObject([{ id, status: "FAILED" }]);
  expect(await findJob(database.reads, id, null)).toMatchObject({ failure: { code: "DEADLINE_EXCEEDED" } });
});

test("a retryable failure waits, and a spent budget ends the job with its last failure", async () => {
  const id = await submitOne(database, { attemptBudget: 2 });
  const first = await claimOne(database);
  await settleJobs(sql, [failedRetryably(first, { waitMs: 0 })], OPTIONS);
  const second = await claimOne(database);
  expect(second.attemptNumber).toBe(2);
  await settleJobs(sql, [failedRetryably(second, { retryAfterMs: 7_000, waitMs: 7_000 })], OPTIONS);
  const job = await findJob(database.reads, id, null);
  expect(job).toMatchObject({ status: "FAILED", failure: { code: "HTTP_SERVER_ERROR" } });
  expect(job?.failure?.retryAt).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/);
});

test("J6 a cancel is terminal at once and ends the running attempt as CANCELLED", async () => {
  const id = await submitOne(database);
  const lease = await claimOne(database);
  expect(await cancelJob(sql, { id, callerId: "other" }, OPTIONS)).toBeNull();
  expect(await cancelJob(sql, { id, callerId: "acme" }, OPTIONS)).toMatchObject({ id, status: "CANCELLED" });
  expect(await cancelJob(sql, { id, callerId: "acme" }, OPTIONS)).toBeNull();
  const [verdict] = await settleJobs(sql, [succeeded(lease)], OPTIONS);
  expect(verdict?.verdict).toBe("STALE");
  expect(await ledger(id)).toEqual(["CANCELLED"]);
});

test("J7 twenty equal submits at once make one job; another body under the key is a mismatch", async () => {
  const submit = () =>
    submitJobs(sql, { callerId: "acme", jobs: [newJob({ idempotencyKey: "order-1" })], queuedMax: null });
  const verdicts = (await Promise.all(Array.from({ length: 20 }, submit))).flat();
  expect(verdicts.filter((row) => row.kind === "ACCEPTED")).toHaveLength(1);
  expect(verdicts.filter((row) => row.kind === "REPLAYED")).toHaveLength(19);
  expect(new Set(verdicts.map((row) => ("id" in row ? row.id : null))).size).toBe(1);
  const [other] = await submitJobs(sql, {
    callerId: "acme",
    jobs: [newJob({ idempotencyKey: "order-1", requestSha256: "11".repeat(32) })],
    queuedMax: null,
  });
  expect(other).toEqual({ kind: "IDEMPOTENCY_MISMATCH" });
});

test("J7 batches that share keys in opposite orders all end, and each key made one job", async () => {
  // Whether two of them meet half way is chance, so they get ten chances.
  for (let round = 0; round < 10; round += 1) {
    const keys = Array.from({ length: 500 }, (_, index) => `shared-${round}-${index}`);
    const batch = (ordered: readonly string[]) => {
      const jobs = ordered.map((idempotencyKey) => newJob({ idempotencyKey }));
      return submitJobs(sql, { callerId: "acme", jobs, queuedMax: null });
    };
    const batches = Array.from({ length: 8 }, (_, index) => batch(index % 2 === 0 ? keys : keys.toReversed()));
    const verdicts = (await Promise.all(batches)).flat();
    expect(verdicts.filter((row) => row.kind === "ACCEPTED")).toHaveLength(500);
    expect(verdicts.filter((row) => row.kind === "REPLAYED")).toHaveLength(3_500);
  }
});

test("F2 a job is never due before the time that its failure names", async () => {
  for (let count = 0; count < 150; count += 1) {
    const id = await submitOne(database);
    await settleJobs(sql, [failedRetryably(await claimOne(database), { retryAfterMs: 1_000, waitMs: 1_000 })], OPTIONS);
    const [row] = await sql<{ early: boolean }[]>`
      select j.due_at < (a.failure ->> 'retryAt')::timestamptz as early
      from jobs j join attempts a on a.job_id = j.id where j.id = ${id}`;
    expect(row?.early).toBe(false);
    // Else the next claim may take it: on a slow machine it is due again by then.
    await cancelJob(sql, { id, callerId: null }, OPTIONS);
  }
});

test("J9 slots are shared over callers and an exact submit answers QUEUE_FULL as a whole", async () => {
  await submitJobs(sql, { callerId: "big", jobs: Array.from({ length: 200 }, () => newJob()), queuedMax: null });
  await submitJobs(sql, { callerId: "small", jobs: [newJob(), newJob()], queuedMax: null });
  const leases = await claim(database, 10);
  expect(leases.filter((lease) => lease.callerId === "small")).toHaveLength(2);
  expect(leases.length).toBeGreaterThanOrEqual(7);
  const full = await submitJobs(sql, { callerId: "small", jobs: [newJob(), newJob()], queuedMax: 1 });
  expect(full).toEqual([{ kind: "QUEUE_FULL" }, { kind: "QUEUE_FULL" }]);
});

test("J9 a caller's running bound holds over many claimers at once, round after round", async () => {
  for (let round = 0; round < 15; round += 1) {
    const callerId = `bound-${round}`;
    await submitJobs(sql, { callerId, jobs: Array.from({ length: 60 }, () => newJob()), queuedMax: null });
    const claims = Array.from({ length: 8 }, () => claim(database, 20, { callerRunningMax: 5 }));
    const leases = (await Promise.all(claims)).flat().filter((lease) => lease.callerId === callerId);
    expect(leases).toHaveLength(5);
    await sql`update jobs set status = 'CANCELLED', lease_token = null, lease_until = null, finished_at = clock_timestamp()
              where finished_at is null`;
  }
});

test("A2 equal bytes of one group and of two groups at once become one blob and one artifact, the losers are queued", async () => {
  for (let count = 0; count < 4; count += 1) await submitOne(database);
  const leases = await claim(database, 4);
  const sha = "cd".repeat(32);
  const groups = [leases.slice(0, 2), leases.slice(2)].map((group) =>
    settleJobs(
      sql,
      group.map((lease) => succeeded(lease, sha)),
      OPTIONS,
    ),
  );
  const verdicts = (await Promise.all(groups)).flat();
  expect(verdicts.every((row) => row.verdict === "SETTLED")).toBe(true);
  const [counts] = await sql<{ blobs: number; artifacts: number; losers: number }[]>`
    select (select count(*)::int from blobs where sha256 = decode(${sha}, 'hex')) as blobs,
           (select count(*)::int from artifacts where sha256 = decode(${sha}, 'hex')) as artifacts,
           (select count(*)::int from object_deletions where sha256 = decode(${sha}, 'hex')) as losers`;
  expect(counts).toEqual({ blobs: 1, artifacts: 1, losers: 3 });
});

test("A2 a blob that was seen and is gone settles nothing and says so", async () => {
  const id = await submitOne(database);
  const lease = await claimOne(database);
  const report = succeeded(lease);
  if (report.bytes === null) throw new Error("no bytes");
  const gone = { ...report, bytes: { ...report.bytes, kind: "SEEN" as const, blobId: crypto.randomUUID() } };
  const [verdict] = await settleJobs(sql, [gone], OPTIONS);
  expect(verdict?.verdict).toBe("BYTES_GONE");
  expect(await ledger(id)).toEqual([]);
  const [second] = await settleJobs(sql, [report], OPTIONS);
  expect(second?.verdict).toBe("SETTLED");
});
