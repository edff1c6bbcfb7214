import { untilBlocked } from "@keble-scraper/testkit";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { recordDownload } from "../src/commands/artifacts/index.ts";
import { settleDeliveries } from "../src/commands/callbacks/index.ts";
import { settleTries } from "../src/commands/callbacks/settle-tries.ts";
import { settleJobs } from "../src/commands/fetching/index.ts";
import { cancelJob, deleteJob, submitJobs } from "../src/commands/intake/index.ts";
import type { Tx } from "../src/database.ts";
import { eraseJobs } from "../src/steps/erase-jobs.ts";
import { BY, claimOne as claimDelivery, CLOCKS, delivered, endJob, registerOne } from "./callback-fixtures.ts";
import { claimOne, failedRetryably, newJob, openTestDatabase, OPTIONS, submitOne, succeeded } from "./job-fixtures.ts";

const database = await openTestDatabase();
const sql = database.commands;
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(async () => {
  await sql`update jobs set lease_until = null, lease_token = null, status = 'CANCELLED', finished_at = clock_timestamp() where finished_at is null`;
  await sql`delete from callback_deliveries where ended_at is null`;
});

const erase = (id: string, callerId: string | null = "acme") => deleteJob(sql, { id, callerId }, BY);
const codeOf = (answer: Awaited<ReturnType<typeof erase>>) => (answer.ok ? "OK" : answer.failure.code);

/** A job that fetched bytes at its second attempt, and kept evidence of the first. */
async function fetchOne(overrides: Parameters<typeof submitOne>[1] = {}) {
  const id = await submitOne(database, overrides);
  const hash = () => crypto.randomUUID().replaceAll("-", "").repeat(2);
  const lease = await claimOne(database);
  await settleJobs(sql, [failedRetryably(lease, { bytes: succeeded(lease, hash()).bytes })], OPTIONS);
  await settleJobs(sql, [succeeded(await claimOne(database), hash())], OPTIONS);
  const [row] = await sql<{ artifact_id: string; evidence_id: string }[]>`
    select j.artifact_id, t.evidence_artifact_id as evidence_id
    from jobs j join attempts t on t.job_id = j.id and t.ordinal = 1 where j.id = ${id}`;
  if (row === undefined) throw new Error("not settled");
  return { id, artifactId: row.artifact_id, evidenceId: row.evidence_id };
}

/** What `during` comes to when it starts inside a transaction that has done `first`, and that commits once it waits. */
async function whileHeld<T>(first: (tx: Tx) => Promise<unknown>, during: () => Promise<T>): Promise<T> {
  let running: Promise<T> | undefined;
  await sql.begin(async (tx) => {
    await first(tx);
    running = during();
    await untilBlocked(sql, { answered: running });
  });
  if (running === undefined) throw new Error("nothing ran");
  return running;
}

describe("erasing a job", () => {
  test("takes its attempts, its event with deliveries and tries, and its key, and leaves an audit row", async () => {
    const endpoint = await registerOne(database);
    const { id } = await fetchOne({ callbackEndpoint: endpoint.name, idempotencyKey: "order-1" });
    await settleDeliveries(sql, [delivered(await claimDelivery(database))], CLOCKS);
    expect(await erase(id)).toEqual({ ok: true, value: null });
    const [left] = await sql`
      select (select count(*)::int from jobs where id = ${id}) as jobs,
             (select count(*)::int from attempts where job_id = ${id}) as attempts,
             (select count(*)::int from callback_events where job_id = ${id}) as events,
             (select count(*)::int from callback_deliveries where endpoint_id = ${endpoint.id}) as deliveries,
             (select count(*)::int from callback_tries) as tries`;
    expect(left).toEqual({ jobs: 0, attempts: 0, events: 0, deliveries: 0, tries: 0 });
    const audit = await sql`
      select action, actor, caller_id, request_id, details from audit_events where subject = ${`job:${id}`}`;
    expect(audit).toEqual([
      {
        action: "job.deleted",
        actor: BY.actor,
        caller_id: "acme",
        request_id: BY.requestId,
        details: { status: "SUCCEEDED" },
      },
    ]);
    expect(await erase(id)).toMatchObject({ failure: { code: "NOT_FOUND" } });
    const again = await submitOne(database, { idempotencyKey: "order-1" });
    expect(again).not.toBe(id);
  });

  test("has the artifacts it held looked at now: its result's and its evidence's", async () => {
    const { id, artifactId, evidenceId } = await fetchOne();
    const due = () => sql`
      select id from artifacts where id in (${artifactId}, ${evidenceId}) and review_at <= clock_timestamp() + interval '1 s'`;
    expect(await due()).toEqual([]);
    expect(codeOf(await erase(id))).toBe("OK");
    expect(await due()).toHaveLength(2);
  });

  test("waits for no artifact that a settle has locked, and tells the others", async () => {
    const { id, artifactId, evidenceId } = await fetchOne();
    await sql.begin(async (tx) => {
      await tx`update artifacts set state = state where id = ${artifactId}`;
      expect(codeOf(await erase(id))).toBe("OK");
    });
    const rows = await sql`
      select id from artifacts where id in (${artifactId}, ${evidenceId}) and review_at <= clock_timestamp() + interval '1 s'`;
    expect(rows).toEqual([{ id: evidenceId }]);
  });

  test("another caller's job is not found; an operator erases any", async () => {
    const { id } = await fetchOne();
    expect(codeOf(await erase(id, "other"))).toBe("NOT_FOUND");
    expect(codeOf(await erase(uuidv7(), null))).toBe("NOT_FOUND");
    expect(codeOf(await erase(id, null))).toBe("OK");
  });
});

describe("a job is not erased", () => {
  test("while it waits or runs", async () => {
    const id = await submitOne(database);
    expect(codeOf(await erase(id))).toBe("CONFLICT");
    await claimOne(database);
    expect(codeOf(await erase(id))).toBe("CONFLICT");
    expect(await sql`select 1 from audit_events where subject = ${`job:${id}`}`).toEqual([]);
  });

  test.each([
    ["PENDING", "PENDING", false],
    ["LEASED", "LEASED", false],
    ["DEAD_LETTER", "DEAD_LETTER", false],
    ["DELIVERED", "DELIVERED", true],
    ["DISCARDED", "DISCARDED", true],
  ] as const)("R1 while its event is %s, unless that ended well", async (_name, state, isErased) => {
    const { jobId, eventId } = await endJob(database, await registerOne(database));
    await sql`
      update callback_deliveries set state = 'DELIVERED', ended_at = clock_timestamp() where event_id = ${eventId}`;
    await sql`
      update callback_events set state = ${state}, dead_letter_reason = ${state === "DEAD_LETTER" ? "BUDGET_SPENT" : null}
      where id = ${eventId}`;
    expect(codeOf(await erase(jobId))).toBe(isErased ? "OK" : "CONFLICT");
  });

  test("R1 while a delivery of its delivered event is open", async () => {
    const { jobId, eventId } = await endJob(database, await registerOne(database));
    await sql`update callback_events set state = 'DELIVERED' where id = ${eventId}`;
    expect(codeOf(await erase(jobId))).toBe("CONFLICT");
    expect(await sql`select 1 from callback_deliveries where event_id = ${eventId}`).toHaveLength(1);
  });
});

describe("at the same time", () => {
  // The replay was answered to its caller: erased with the event, it would be lost without a word.
  test("R1 a replay that came first is seen, and keeps the job", async () => {
    const endpoint = await registerOne(database);
    const { jobId, eventId } = await endJob(database, endpoint);
    await settleDeliveries(sql, [delivered(await claimDelivery(database))], CLOCKS);
    const answer = await whileHeld(
      async (tx) => {
        await tx`select 1 from callback_events where id = ${eventId} for update`;
        await tx`
          insert into callback_deliveries (id, event_id, endpoint_id, trigger, ordinal, attempt_budget, due_at)
          values (${uuidv7()}, ${eventId}, ${endpoint.id}, 'REPLAY', 2, 3, clock_timestamp() + interval '1 hour')`;
      },
      () => erase(jobId),
    );
    expect(codeOf(answer)).toBe("CONFLICT");
    expect(await sql`select 1 from callback_deliveries where event_id = ${eventId}`).toHaveLength(2);
  });

  test("a delivery that ends well meanwhile is seen: the job goes", async () => {
    const { jobId } = await endJob(database, await registerOne(database));
    const lease = await claimDelivery(database);
    const answer = await whileHeld(
      (tx) => settleTries(tx, [delivered(lease)], CLOCKS),
      () => erase(jobId),
    );
    expect(codeOf(answer)).toBe("OK");
  });

  test("of two erasures one erases, and one audit row says so", async () => {
    const { id } = await fetchOne();
    const answers = await Promise.all([erase(id), erase(id), erase(id)]);
    expect(answers.map(codeOf).toSorted()).toEqual(["NOT_FOUND", "NOT_FOUND", "OK"]);
    expect(await sql`select 1 from audit_events where subject = ${`job:${id}`}`).toHaveLength(1);
    const { id: purged } = await fetchOne();
    const late = await whileHeld(
      (tx) => eraseJobs(tx, [purged]),
      () => erase(purged),
    );
    expect(codeOf(late)).toBe("NOT_FOUND");
    expect(await sql`select 1 from audit_events where subject = ${`job:${purged}`}`).toEqual([]);
  });

  test("J7 a submit under the key of a job that goes at that moment is a new job", async () => {
    const { id } = await fetchOne({ idempotencyKey: "at-once" });
    // Between the insert that the key refuses and the look for the job that has it.
    const racing = new Proxy(sql, {
      apply(_target, _self, [strings, ...values]: [TemplateStringsArray, ...never[]]) {
        const run = () => sql(strings, ...values);
        return strings[0]?.includes("select id, idempotency_key") === true ? erase(id).then(run) : run();
      },
    });
    const jobs = [newJob(), newJob({ idempotencyKey: "at-once" }), newJob()];
    const verdicts = await submitJobs(racing, { callerId: "acme", jobs, queuedMax: null });
    expect(verdicts).toMatchObject(jobs.map((job) => ({ kind: "ACCEPTED", id: job.id })));
  });

  test("a cancel and an erasure: the job is gone, or it is cancelled and still there", async () => {
    for (let round = 0; round < 100; round += 1) {
      const id = await submitOne(database);
      const [, answer] = await Promise.all([cancelJob(sql, { id, callerId: null }, OPTIONS), erase(id)]);
      const rows = await sql`select status from jobs where id = ${id}`;
      expect(rows).toEqual(answer.ok ? [] : [{ status: "CANCELLED" }]);
    }
  });

  test("A3 a download that is signed while its job goes stays good: the bytes are only to be looked at", async () => {
    const { id, artifactId } = await fetchOne();
    const [blob] = await sql<{ sha256: string; generation: string }[]>`
      select encode(b.sha256, 'hex') as sha256, b.generation
      from artifacts a join blobs b on b.id = a.blob_id where a.id = ${artifactId}`;
    const download = {
      ...blob!,
      auditId: uuidv7(),
      artifactId,
      callerId: "acme",
      kind: "SERVICE",
      purpose: "JOB_CONTENT",
      expiresAt: new Date(Date.now() + 60_000),
    } as const;
    const [answer, isSigned] = await Promise.all([erase(id), recordDownload(sql, download, BY)]);
    expect([codeOf(answer), isSigned]).toEqual(["OK", true]);
    expect(await sql`select state from artifacts where id = ${artifactId}`).toEqual([{ state: "AVAILABLE" }]);
  });
});
