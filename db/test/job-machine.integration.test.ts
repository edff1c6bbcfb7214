import { afterAll, expect, test } from "vitest";
import {
  deferJobs,
  expireJobs,
  recoverLeases,
  releaseJobs,
  renewLeases,
  settleJobs,
} from "../src/commands/fetching/index.ts";
import { cancelJob } from "../src/commands/intake/index.ts";
import { JOB_TRANSITIONS, STORED_JOB_STATES, type StoredJobState } from "../src/machines/job-machine.ts";
import {
  OPTIONS,
  claim,
  claimOne,
  failedRetryably,
  newJob,
  openTestDatabase,
  reserve,
  submitOne,
  succeeded,
} from "./job-fixtures.ts";

const database = await openTestDatabase();
const sql = database.commands;
afterAll(() => database[Symbol.asyncDispose]());

/** Every command, with the lease that a worker once had. Those of a stale worker must find nothing to do. */
const COMMANDS: Record<string, (id: string, lease: { id: string; token: string }) => Promise<unknown>> = {
  claim: () => claim(database),
  "claim suspects": () => claim(database, 50, { of: "SUSPECTS" }),
  renew: (_id, lease) => renewLeases(sql, [lease], 60),
  "settle success": (_id, lease) => settleJobs(sql, [succeeded(lease as never)], OPTIONS),
  "settle retry": (_id, lease) => settleJobs(sql, [failedRetryably(lease as never)], OPTIONS),
  "settle terminal": (_id, lease) => settleJobs(sql, [failedRetryably(lease as never, { next: "FINISH" })], OPTIONS),
  release: (_id, lease) => releaseJobs(sql, [{ ...lease, dueInMs: 5_000 }], OPTIONS),
  "release to the next route": (_id, lease) =>
    releaseJobs(sql, [{ ...lease, dueInMs: 0, next: "NEXT_ROUTE" }], OPTIONS),
  reserve: (id, { token }) => reserve(database, { id, token, route: "DIRECT" }, 0),
  defer: () => deferJobs(sql, { limit: 100, ...OPTIONS }),
  recover: () => recoverLeases(sql, { limit: 100, ...OPTIONS }),
  expire: () => expireJobs(sql, { limit: 100, ...OPTIONS }),
  cancel: (id) => cancelJob(sql, { id, callerId: null }, OPTIONS),
};

/** A job brought to a state by the commands themselves, with the last lease it had. */
async function jobIn(state: StoredJobState): Promise<{ id: string; token: string }> {
  const id = await submitOne(database);
  const nobody = { id, token: crypto.randomUUID() };
  if (state === "QUEUED") return nobody;
  const lease = await claimOne(database);
  if (state === "SUCCEEDED") await settleJobs(sql, [succeeded(lease)], OPTIONS);
  if (state === "FAILED") await settleJobs(sql, [failedRetryably(lease, { next: "FINISH" })], OPTIONS);
  if (state === "CANCELLED") await cancelJob(sql, { id, callerId: null }, OPTIONS);
  return lease;
}

async function rowOf(id: string) {
  const [row] = await sql`
    select status, attempts_used, attempt_number, result, failure, finished_at, expires_at, artifact_id,
           (select count(*)::int from attempts where job_id = jobs.id) as attempts
    from jobs where id = ${id}`;
  return row;
}

async function clear(): Promise<void> {
  await sql`update jobs set status = 'CANCELLED', lease_token = null, lease_until = null, reserved_micros = null, reserved_on = null,
            finished_at = clock_timestamp() where finished_at is null`;
}

const PAIRS = STORED_JOB_STATES.flatMap((from) => Object.keys(COMMANDS).map((command) => [from, command] as const));

test.each(PAIRS)("from %s, %s leads only where the machine's table says", async (from, name) => {
  await clear();
  const lease = await jobIn(from);
  const before = await rowOf(lease.id);
  await COMMANDS[name]?.(lease.id, lease);
  const after = await rowOf(lease.id);
  const to = after?.["status"] as StoredJobState;
  if (to === from) return;
  const allowed: Partial<Record<StoredJobState, readonly string[]>> = JOB_TRANSITIONS[from];
  expect(allowed[to], `${from} -> ${to} by ${name}`).toContain(name.split(" ")[0]);
  expect(before).not.toEqual(after);
});

test.each(["SUCCEEDED", "FAILED", "CANCELLED"] as const)(
  "J6 a job that is %s stays as it is under every command, and under SQL by hand",
  async (state) => {
    await clear();
    const lease = await jobIn(state);
    const before = await rowOf(lease.id);
    for (const command of Object.values(COMMANDS)) await command(lease.id, lease);
    expect(await rowOf(lease.id)).toEqual(before);
    await expect(
      sql`update jobs set status = 'QUEUED', finished_at = null, result = null, failure = null where id = ${lease.id}`,
    ).rejects.toThrow(/never changes/);
    await sql`update jobs set expires_at = clock_timestamp() where id = ${lease.id}`;
  },
);

test("no attempt ends after the job that it ended, nor before it began", async () => {
  const [row] = await sql<{ odd: number; all: number }[]>`
    select count(*) filter (where a.finished_at > j.finished_at or a.finished_at < a.started_at)::int as odd, count(*)::int as all
    from attempts a join jobs j on j.id = a.job_id where j.finished_at is not null`;
  expect(row?.all).toBeGreaterThan(20);
  expect(row?.odd).toBe(0);
});

test("J1 budget, deadline and the other terms of a job can't be changed once it is submitted", async () => {
  const id = await submitOne(database);
  for (const change of [
    sql`attempt_budget = 9`,
    sql`deadline_at = deadline_at + interval '1 day'`,
    sql`max_body_bytes = 1`,
    sql`routes = '{UNLOCKER}'`,
    sql`cost_cap_micros = 5`,
  ]) {
    await expect(sql`update jobs set ${change} where id = ${id}`).rejects.toThrow(/terms of a job never change/);
  }
});

test("J1 a claim stops at the stored budget, whatever state says", async () => {
  await clear();
  const id = await submitOne(database, { attemptBudget: 1 });
  await sql`update jobs set attempts_used = 1 where id = ${id}`;
  expect(await claim(database)).toEqual([]);
});

test("J3 the ledger's numbers have no gaps over releases, hand-backs, losses and retries", async () => {
  await clear();
  const id = await submitOne(database, newJob({ attemptBudget: 3 }));
  const due = () => sql`update jobs set due_at = clock_timestamp() where id = ${id} and finished_at is null`;
  await releaseJobs(sql, [{ ...(await claimOne(database)), dueInMs: 1 }], OPTIONS);
  await due();
  const handedBack = await claimOne(database);
  await settleJobs(
    sql,
    [failedRetryably(handedBack, { outcome: "HANDED_BACK", failure: null, httpStatus: null })],
    OPTIONS,
  );
  await due();
  await claimOne(database);
  await sql`update jobs set lease_until = clock_timestamp() - interval '1 ms' where id = ${id}`;
  await recoverLeases(sql, { limit: 10, ...OPTIONS });
  await due();
  await settleJobs(sql, [failedRetryably(await claimOne(database, { of: "SUSPECTS" }))], OPTIONS);
  await due();
  await settleJobs(sql, [succeeded(await claimOne(database))], OPTIONS);
  const rows = await sql<{ ordinal: number; outcome: string }[]>`
    select ordinal, outcome from attempts where job_id = ${id} order by ordinal`;
  expect(rows.map((row) => row.outcome)).toEqual(["HANDED_BACK", "LOST", "FAILED", "SUCCEEDED"]);
  expect(rows.map((row) => row.ordinal)).toEqual([1, 2, 3, 4]);
  expect(await rowOf(id)).toMatchObject({ attempts_used: 3, status: "SUCCEEDED" });
});
