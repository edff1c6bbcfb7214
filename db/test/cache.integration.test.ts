import { untilBlocked } from "@keble-scraper/testkit";
import { afterAll, beforeEach, expect, test } from "vitest";
import {
  type AttemptReport,
  type CacheReport,
  dropCachedAnswer,
  finishFromCache,
  type FlightVerdict,
  type JobLease,
  recoverLeases,
  releaseJobs,
  settleJobs,
  takeFlights,
  wakeWaitingJobs,
} from "../src/commands/fetching/index.ts";
import { cancelJob, type NewJob } from "../src/commands/intake/index.ts";
import { createDatabase } from "../src/database.ts";
import { findJob } from "../src/queries/find-job.ts";
import { findStoredAnswer } from "../src/queries/find-stored-answer.ts";
import { listAttempts } from "../src/queries/list-attempts.ts";
import { type CachedAnswer, listCachedAnswers, SHARED_CACHE } from "../src/queries/list-cached-answers.ts";
import { claim, claimOne, failedRetryably, openTestDatabase, OPTIONS, submitOne, succeeded } from "./job-fixtures.ts";

const database = await openTestDatabase();
const sql = database.commands;
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(async () => {
  await sql`update jobs set lease_until = null, lease_token = null, status = 'CANCELLED', finished_at = clock_timestamp() where finished_at is null`;
  await sql`delete from cache_flights`;
  await sql`delete from cache_entries`;
});

const KEY = "c0".repeat(32);
const HOUR_MS = 3_600_000;
const FROM_CACHE = { ...OPTIONS, artifactRetentionMs: OPTIONS.jobRetentionMs };
const CACHED: Partial<NewJob> = { freshness: "ONE_HOUR", cacheKey: KEY };

/** What a success leaves: its caller's own answer. */
function leaves(more: Partial<CacheReport> = {}): CacheReport {
  return { key: KEY, isShared: false, marksOwn: false, etag: '"1"', lastModified: null, ...more };
}

/** Runs a job of a caller to its end, and leaves its answer. */
async function leave(
  options: { callerId?: string; cache?: CacheReport | null; report?: Partial<AttemptReport>; sha256?: string } = {},
): Promise<JobLease> {
  const { callerId = "acme", cache = leaves(), report = {}, sha256 = "ab".repeat(32) } = options;
  await submitOne(database, { ...CACHED, cacheKey: cache?.key ?? KEY }, callerId);
  const lease = await claimOne(database);
  const [verdict] = await settleJobs(sql, [{ ...succeeded(lease, sha256), cache, ...report }], OPTIONS);
  expect(verdict?.verdict).toBe("SETTLED");
  return lease;
}

async function lookUp(callerId = "acme", key = KEY): Promise<CachedAnswer | undefined> {
  const { answers } = await listCachedAnswers(sql, [{ key, callerId }]);
  return answers[0];
}

/** Claims a job of a caller that wants the answer. */
async function follow(overrides: Partial<NewJob> = {}, callerId = "acme"): Promise<JobLease> {
  await submitOne(database, { ...CACHED, ...overrides }, callerId);
  return claimOne(database);
}

async function take(lease: JobLease, answer: CachedAnswer, freshnessMs = lease.freshnessMs) {
  const [verdict] = await finishFromCache(sql, [{ ...lease, answer, freshnessMs }], FROM_CACHE);
  return verdict;
}

async function ledger(jobId: string) {
  return (await listAttempts(database.reads, { jobId, afterId: null, limit: 50 })).items.map(({ outcome }) => outcome);
}

/** The stored answer of a caller; fails where there is none. */
async function stored(callerId = "acme"): Promise<CachedAnswer> {
  const answer = await lookUp(callerId);
  if (answer === undefined) throw new Error("there is no answer");
  return answer;
}

function request(lease: JobLease, more: { callerId?: string; seenAtMs?: number } = {}) {
  return { ...lease, place: { key: KEY, callerId: more.callerId ?? lease.callerId }, seenAtMs: more.seenAtMs ?? 0 };
}

async function fly(
  lease: JobLease,
  more: { callerId?: string; seenAtMs?: number } = {},
): Promise<FlightVerdict["kind"]> {
  const verdicts = await takeFlights(sql, [request(lease, more)]);
  return verdicts.get(lease.token)?.kind ?? "STALE";
}

const countEntries = async () => (await sql`select 1 from cache_entries`).length;
const countFlights = async () => (await sql`select 1 from cache_flights`).length;

test("A7 a job ends with the stored answer: attempt given back, no line in the ledger, no cost", async () => {
  const leader = await leave();
  const lease = await follow();
  expect(lease).toMatchObject({ cacheKey: KEY, freshnessMs: HOUR_MS });
  const verdict = await take(lease, await stored());
  expect(verdict).toMatchObject({ verdict: "SETTLED", ended: { id: lease.id, status: "SUCCEEDED" } });
  const [first, job] = await Promise.all([leader.id, lease.id].map((id) => findJob(database.reads, id, "acme")));
  expect(job).toMatchObject({
    status: "SUCCEEDED",
    limits: { attemptsUsed: 0, costMicros: 0 },
    result: { ...first?.result, fromCache: true, ageSeconds: verdict?.ageSeconds },
  });
  expect(verdict?.ageSeconds).toBeLessThan(60);
  expect(job?.result?.artifactId).toBe(first?.result?.artifactId);
  expect(await ledger(lease.id)).toEqual([]);
});

test("A7 only an answer that is young enough, small enough, of the same key and as it was listed is taken", async () => {
  await leave();
  const answer = await stored();
  expect(await take(await follow({ maxBodyBytes: 4 }), answer)).toMatchObject({ verdict: "GONE", ended: null });
  expect(await take(await follow({ cacheKey: "c1".repeat(32) }), answer)).toMatchObject({ verdict: "STALE" });
  expect(await take(await follow(), { ...answer, key: "c1".repeat(32) })).toMatchObject({ verdict: "STALE" });
  expect(await take(await follow(), { ...answer, validatedAtMs: answer.validatedAtMs - 1 })).toMatchObject({
    verdict: "GONE",
  });
  await sql`update cache_entries set validated_at = clock_timestamp() - interval '61 minutes'`;
  const old = await stored();
  expect(old.ageMs).toBeGreaterThan(61 * 60_000 - 1);
  expect(await take(await follow(), old)).toMatchObject({ verdict: "GONE" });
  const day = await follow({ freshness: "ONE_DAY" });
  const taken = await take(day, old);
  expect(taken).toMatchObject({ verdict: "SETTLED" });
  expect(Math.floor((taken?.ageSeconds ?? 0) / 60)).toBe(61);
  expect(await countEntries()).toBe(1);
  await sql`update cache_entries set expires_at = clock_timestamp() - interval '1 s'`;
  expect(await lookUp()).toBeUndefined();
  expect(await take(await follow({ freshness: "ONE_DAY" }), old)).toMatchObject({ verdict: "GONE" });
});

test("A7 a caller never takes another caller's own answer", async () => {
  await leave();
  const answer = await stored();
  const other = await follow({}, "globex");
  expect(await lookUp("globex")).toBeUndefined();
  expect(await take(other, answer)).toMatchObject({ verdict: "GONE", ended: null });
  expect(await take(other, { ...answer, callerId: SHARED_CACHE })).toMatchObject({ verdict: "GONE" });
});

test("A7 a shared answer becomes an artifact of the caller that takes it, over the same blob, once", async () => {
  const leader = await leave({ cache: leaves({ isShared: true }) });
  const answer = await stored(SHARED_CACHE);
  await Promise.all([1, 2, 3, 4].map(() => submitOne(database, CACHED, "globex")));
  const leases = await claim(database, 4);
  const verdicts = await finishFromCache(
    sql,
    leases.map((lease) => ({ ...lease, answer })),
    FROM_CACHE,
  );
  expect(verdicts.map(({ verdict }) => verdict)).toEqual(Array(4).fill("SETTLED"));
  const [mine] = await sql<{ id: string; blob_id: string }[]>`
    select a.id, a.blob_id from jobs j join artifacts a on a.id = j.artifact_id where j.id = ${leader.id}`;
  const theirs = await sql<{ id: string; blob_id: string; caller_id: string }[]>`
    select distinct a.id, a.blob_id, a.caller_id from jobs j join artifacts a on a.id = j.artifact_id
    where j.id = any(${leases.map(({ id }) => id)}::uuid[])`;
  expect(theirs).toEqual([{ id: expect.any(String) as string, blob_id: mine?.blob_id, caller_id: "globex" }]);
  expect(theirs[0]?.id).not.toBe(mine?.id);
  // Again: the artifact is there.
  const again = await follow({}, "globex");
  expect(await take(again, answer)).toMatchObject({ verdict: "SETTLED" });
  expect(
    await sql`select 1 from artifacts where caller_id = 'globex' and blob_id = ${mine?.blob_id ?? ""}`,
  ).toHaveLength(1);
});

test("A7 an answer whose artifact or blob is being deleted is dropped, and the job goes on", async () => {
  for (const gone of ["ARTIFACT", "BLOB"] as const) {
    await leave({ sha256: gone === "BLOB" ? "b1".repeat(32) : "b2".repeat(32) });
    const answer = await stored();
    const [row] = await sql<{ artifact_id: string }[]>`select artifact_id from cache_entries`;
    if (gone === "ARTIFACT") {
      await sql`update artifacts set state = 'DELETED', deleted_at = clock_timestamp(), blob_id = null where id = ${row?.artifact_id ?? ""}`;
    } else {
      await sql`update blobs set state = 'DELETING' where sha256 = decode(${"b1".repeat(32)}, 'hex')`;
    }
    const lease = await follow();
    expect(await take(lease, answer)).toMatchObject({ verdict: "GONE", ended: null });
    expect(await countEntries()).toBe(0);
    expect(await findJob(database.reads, lease.id, null)).toMatchObject({
      status: "RUNNING",
      limits: { attemptsUsed: 1 },
    });
  }
});

test("A7 a deletion that holds the blob is waited for and seen", async () => {
  await leave({ sha256: "b3".repeat(32) });
  const answer = await stored();
  const lease = await follow();
  const [row] = await sql<{ artifact_id: string; blob_id: string }[]>`
    select e.artifact_id, a.blob_id from cache_entries e join artifacts a on a.id = e.artifact_id`;
  const { taking } = await sql.begin(async (tx) => {
    await tx`select 1 from blobs where id = ${row?.blob_id ?? ""} for update`;
    await tx`select 1 from artifacts where id = ${row?.artifact_id ?? ""} for update`;
    const pending = take(lease, answer);
    await untilBlocked(sql);
    await tx`update artifacts set state = 'DELETED', deleted_at = clock_timestamp(), blob_id = null where id = ${row?.artifact_id ?? ""}`;
    await tx`delete from cache_entries where artifact_id = ${row?.artifact_id ?? ""}`;
    await tx`update blobs set state = 'DELETING' where id = ${row?.blob_id ?? ""}`;
    return { taking: pending };
  });
  expect(await taking).toMatchObject({ verdict: "GONE", ended: null });
  expect(await findJob(database.reads, lease.id, null)).toMatchObject({ status: "RUNNING" });
});

test("A7 an entry goes with its artifact's row", async () => {
  await leave({ sha256: "b4".repeat(32) });
  const [row] = await sql<{ artifact_id: string }[]>`select artifact_id from cache_entries`;
  // A tombstone that nothing refers to any more is what goes.
  await sql`update jobs set artifact_id = null where artifact_id = ${row?.artifact_id ?? ""}`;
  await sql`delete from artifacts where id = ${row?.artifact_id ?? ""}`;
  expect(await countEntries()).toBe(0);
});

test("J2 a lost lease takes nothing from the cache", async () => {
  await leave();
  const answer = await stored();
  const lease = await follow();
  await sql`update jobs set lease_until = clock_timestamp() - interval '1 ms' where id = ${lease.id}`;
  expect(await take(lease, answer)).toMatchObject({ verdict: "STALE", ended: null });
  const other = { ...lease, token: crypto.randomUUID() };
  await sql`update jobs set lease_until = clock_timestamp() + interval '60 s' where id = ${lease.id}`;
  expect(await take(other, answer)).toMatchObject({ verdict: "STALE" });
  expect(await findJob(database.reads, lease.id, null)).toMatchObject({ status: "RUNNING" });
});

test("A7 failures, block pages and answers that are not 2xx neither enter nor replace", async () => {
  const cache = leaves();
  await submitOne(database, CACHED);
  const blocked = failedRetryably(await claimOne(database), { next: "FINISH", cache, bytes: null });
  await settleJobs(sql, [blocked], OPTIONS);
  expect(await countEntries()).toBe(0);
  await leave({ report: { result: { httpStatus: 304, finalUrl: "https://shop.example.com/" }, bytes: null } });
  await leave({ report: { result: { httpStatus: 404, finalUrl: "https://shop.example.com/" } } });
  expect(await countEntries()).toBe(0);
  await leave();
  const good = await stored();
  await leave({ report: { result: { httpStatus: 404, finalUrl: "https://shop.example.com/" } } });
  await submitOne(database, CACHED);
  await settleJobs(sql, [failedRetryably(await claimOne(database), { next: "FINISH", cache })], OPTIONS);
  expect(await stored()).toMatchObject({ validatedAtMs: good.validatedAtMs });
});

test("A7 a stale settle leaves nothing in the cache, and a job without a key nothing either", async () => {
  await submitOne(database, CACHED);
  const lease = await claimOne(database);
  await settleJobs(sql, [{ ...succeeded(lease), token: crypto.randomUUID(), cache: leaves() }], OPTIONS);
  await settleJobs(sql, [succeeded(lease)], OPTIONS);
  expect(await countEntries()).toBe(0);
});

test("A7 an answer without a body is kept and taken without an artifact", async () => {
  await leave({ report: { bytes: null, bodyBytes: 0 } });
  const lease = await follow({ maxBodyBytes: 1 });
  expect(await take(lease, await stored())).toMatchObject({ verdict: "SETTLED" });
  const job = await findJob(database.reads, lease.id, null);
  expect(job?.result).toMatchObject({ artifactId: null, sha256: null, sizeBytes: 0, fromCache: true });
});

test("A7 a newer answer replaces an older one, and many settles of many keys at once end", async () => {
  await leave();
  const first = await stored();
  await leave({ sha256: "b5".repeat(32), cache: leaves({ etag: '"2"' }) });
  expect(await stored()).toMatchObject({ etag: '"2"' });
  expect((await stored()).validatedAtMs).toBeGreaterThan(first.validatedAtMs);
  const keys = ["d1", "d2", "d3", "d4", "d5"].map((byte) => byte.repeat(32));
  for (let round = 0; round < 10; round += 1) {
    for (const cacheKey of [...keys, ...keys]) await submitOne(database, { ...CACHED, cacheKey });
    const leases = await claim(database, 10);
    const reports = leases.map((lease) => ({ ...succeeded(lease), cache: leaves({ key: lease.cacheKey ?? "" }) }));
    await takeFlights(
      sql,
      leases.map((lease) => ({ ...lease, place: { key: lease.cacheKey ?? "", callerId: "acme" }, seenAtMs: 0 })),
    );
    const groups = await Promise.all([
      settleJobs(sql, reports.slice(0, 5), OPTIONS),
      settleJobs(sql, reports.slice(5).toReversed(), OPTIONS),
      takeFlights(
        sql,
        leases
          .toReversed()
          .map((lease) => ({ ...lease, place: { key: lease.cacheKey ?? "", callerId: "acme" }, seenAtMs: 0 })),
      ),
    ]);
    expect([...groups[0], ...groups[1]].every(({ verdict }) => verdict === "SETTLED")).toBe(true);
  }
});

test("A7 of fifty jobs at once one takes the flight, and the others wait for its lease's end at most", async () => {
  for (let count = 0; count < 50; count += 1) await submitOne(database, CACHED);
  const leases = await claim(database, 50);
  const halves = await Promise.all(
    [leases.slice(0, 20), leases.slice(20, 35), leases.slice(35)].map((some) =>
      takeFlights(
        sql,
        some.map((lease) => request(lease)),
      ),
    ),
  );
  const verdicts = halves.flatMap((half) => [...half.values()]);
  expect(verdicts.filter(({ kind }) => kind === "TAKEN")).toHaveLength(1);
  const held = verdicts.filter((verdict) => verdict.kind === "HELD");
  expect(held).toHaveLength(49);
  expect(held.every(({ leaseMs }) => leaseMs > 50_000 && leaseMs <= 60_000)).toBe(true);
  const { flights } = await listCachedAnswers(sql, [{ key: KEY, callerId: "acme" }]);
  expect(flights).toMatchObject([{ key: KEY, callerId: "acme" }]);
  // Asked again, the one that has it still has it.
  const leader = leases.find(({ token }) => token === flights[0]?.leaseToken);
  if (leader === undefined) throw new Error("nobody has the flight");
  expect(await fly(leader)).toBe("TAKEN");
});

test("A7 a flight is over with its lease: lost, cancelled, released, failed or succeeded, the next job takes it", async () => {
  const ways: Readonly<Record<string, (lease: JobLease) => Promise<unknown>>> = {
    expired: (lease) => sql`update jobs set lease_until = clock_timestamp() - interval '1 ms' where id = ${lease.id}`,
    async lost(lease) {
      await sql`update jobs set lease_until = clock_timestamp() - interval '1 ms' where id = ${lease.id}`;
      await recoverLeases(sql, { limit: 10, ...OPTIONS });
    },
    cancelled: (lease) => cancelJob(sql, { id: lease.id, callerId: "acme" }, OPTIONS),
    released: (lease) => releaseJobs(sql, [{ ...lease, dueInMs: 60_000 }], OPTIONS),
    failed: (lease) => settleJobs(sql, [failedRetryably(lease, { next: "FINISH" })], OPTIONS),
    succeeded: (lease) => settleJobs(sql, [succeeded(lease)], OPTIONS),
  };
  for (const [way, end] of Object.entries(ways)) {
    const leader = await follow();
    expect([way, await fly(leader)]).toEqual([way, "TAKEN"]);
    const next = await follow();
    expect([way, await fly(next)]).toEqual([way, "HELD"]);
    await end(leader);
    expect([way, (await listCachedAnswers(sql, [{ key: KEY, callerId: "acme" }])).flights]).toEqual([way, []]);
    expect([way, await fly(next)]).toEqual([way, "TAKEN"]);
    expect([way, await fly(leader)]).toEqual([way, "STALE"]);
    await settleJobs(sql, [succeeded(next)], OPTIONS);
    await sql`update jobs set lease_until = null, lease_token = null, status = 'CANCELLED', finished_at = clock_timestamp() where finished_at is null`;
  }
});

test("A7 a job that takes a flight sees the answer that was written since it looked", async () => {
  const leader = await follow();
  expect(await fly(leader)).toBe("TAKEN");
  const next = await follow();
  await settleJobs(sql, [{ ...succeeded(leader), cache: leaves() }], OPTIONS);
  expect(await countFlights()).toBe(0);
  expect(await fly(next)).toBe("ANSWERED");
  expect(await fly(next, { seenAtMs: (await stored()).validatedAtMs })).toBe("TAKEN");
});

test("A7 an answer or a mark that nobody may take any more, and that the purge has not come to, keeps nobody waiting", async () => {
  await leave({ cache: leaves({ marksOwn: true }) });
  await sql`update cache_entries set expires_at = clock_timestamp() - interval '1 s'`;
  expect(await fly(await follow())).toBe("TAKEN");
  expect(await fly(await follow({}, "globex"), { callerId: SHARED_CACHE })).toBe("TAKEN");
});

test("A7 an answer that is its caller's own leaves a mark, and no shared answer, where callers share", async () => {
  await leave({ cache: leaves({ isShared: true }) });
  await leave({ cache: leaves({ marksOwn: true, etag: null }) });
  expect(await stored()).toMatchObject({ isAnswer: true });
  const mark = await stored(SHARED_CACHE);
  expect(mark).toMatchObject({ isAnswer: false, etag: null, sizeBytes: 0 });
  expect(await take(await follow({}, "globex"), mark)).toMatchObject({ verdict: "GONE", ended: null });
  const [row] = await sql`select expires_at - validated_at as lasts from cache_entries where caller_id = ''`;
  expect(row).toEqual({ lasts: "01:00:00" });
});

test("A7 the whole of an answer is found while its bytes are there, and dropped as it was listed", async () => {
  await leave();
  const answer = await stored();
  expect(await findStoredAnswer(sql, answer)).toMatchObject({
    result: { httpStatus: 200 },
    bytes: { sha256: "ab".repeat(32), sizeBytes: 5 },
  });
  expect(await findStoredAnswer(sql, { ...answer, validatedAtMs: 1 })).toBeNull();
  await dropCachedAnswer(sql, { ...answer, validatedAtMs: 1 });
  expect(await countEntries()).toBe(1);
  await dropCachedAnswer(sql, answer);
  expect(await countEntries()).toBe(0);
});

test("A7 a job that waits for another's fetch is woken, but for one that ran since or waits for something else", async () => {
  const put = async (dueInMs: number) => {
    const lease = await follow();
    await releaseJobs(sql, [{ ...lease, dueInMs }], OPTIONS);
    return { id: lease.id, attemptNumber: lease.attemptNumber - 1 };
  };
  const [waiting, later, ran, deferred] = [await put(29_900), await put(32_000), await put(0), await put(0)];
  await sql`update jobs set deferred_by = 'host:127.0.0.1' where id = ${deferred.id}`;
  await sql`update jobs set attempt_number = 7 where id = ${ran.id}`;
  expect(await wakeWaitingJobs(sql, [waiting, later, ran, deferred])).toBe(1);
  expect(await claimOne(database)).toMatchObject({ id: waiting.id, attemptNumber: 1 });
});

test("a job without a key settles by a statement that knows nothing of the cache", async () => {
  await submitOne(database);
  const lease = await claimOne(database);
  const fresh = createDatabase({
    url: database.url,
    applicationName: "test",
    commandConnections: 1,
    readConnections: 1,
    statementTimeoutMs: 20_000,
  });
  try {
    const [verdict] = await settleJobs(fresh.commands, [succeeded(lease)], OPTIONS);
    expect(verdict?.verdict).toBe("SETTLED");
    const prepared = await fresh.commands<{ statement: string }[]>`select statement from pg_prepared_statements`;
    const settles = prepared.filter(({ statement }) => statement.includes("insert into attempts"));
    expect(settles).toHaveLength(1);
    expect(settles[0]?.statement).not.toContain("cache_entries");
  } finally {
    await fresh.stop(performance.now() + 1_000);
  }
});
