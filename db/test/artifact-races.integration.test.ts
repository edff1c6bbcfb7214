import { v7 as uuidv7 } from "uuid";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { putPin, recordDownload } from "../src/commands/artifacts/index.ts";
import { finishFromCache, type JobLease } from "../src/commands/fetching/index.ts";
import {
  leasesOf,
  makeDue,
  review,
  REVIEW,
  settle,
  storeArtifacts,
  succeededSeen,
  type TestArtifact,
} from "./artifact-fixtures.ts";
import { newJob, openTestDatabase, OPTIONS, succeeded } from "./job-fixtures.ts";

/*
 * What makes a reference and what deletes meet on the same rows, two thousand times each. A service that acknowledges a
 * pin, a job or a download whose bytes are on their way out has lost a customer's data, and nobody finds out for weeks.
 */

const database = await openTestDatabase();
const sql = database.commands;
afterAll(() => database[Symbol.asyncDispose]());

const ROUNDS = 2_000;
/** Rounds that are under way at once, over rows of their own. */
const WAVE = 500;
const BY = { actor: uuidv7(), requestId: null };
const FAR = new Date("2999-01-01T00:00:00Z");

let deadlocksBefore = 0;
beforeAll(async () => {
  deadlocksBefore = await deadlocks();
});
afterEach(async () => {
  expect(await deadlocks()).toBe(deadlocksBefore);
});

async function deadlocks(): Promise<number> {
  const [row] = await sql<[{ deadlocks: number }]>`
    select deadlocks::int from pg_stat_database where datname = current_database()`;
  return row.deadlocks;
}

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** What became of one artifact: its reference was acknowledged (by a job or not), refused, or is one to new bytes. */
type Answer = { readonly artifact: TestArtifact; readonly isKept: boolean; readonly jobId?: string };
/** Some artifacts, and what makes references to them. */
type Meeting = { readonly artifacts: readonly TestArtifact[]; readonly call: () => Promise<Answer[]> };

/**
 * Runs meetings of a call and a review, four at a time, and compares what each call was told with what is there. Returns
 * how many references were kept and how many refused.
 */
async function race(prepare: (artifacts: readonly TestArtifact[]) => Promise<Meeting[]>) {
  const totals = { kept: 0, refused: 0 };
  for (let round = 0; round < ROUNDS; round += WAVE) {
    const meetings = await prepare(await storeArtifacts(database, WAVE, { isDue: false }));
    const answers = await meetAll(meetings);
    while ((await review(database)).reviewed > 0);
    await compare(answers);
    totals.kept += answers.filter((answer) => answer.isKept).length;
    totals.refused += answers.filter((answer) => !answer.isKept).length;
  }
  return totals;
}

async function meetAll(meetings: readonly Meeting[]): Promise<Answer[]> {
  const answers: Answer[] = [];
  let next = 0;
  async function meetOn(): Promise<void> {
    for (let meeting = meetings[next++]; meeting; meeting = meetings[next++]) {
      const { artifacts, call } = meeting;
      await makeDue(database, ...artifacts.map((artifact) => artifact.id));
      const [said] = await Promise.all([
        sleep(Math.random() * 4).then(call),
        sleep(Math.random() * 4).then(() => review(database, { limit: 8 })),
      ]);
      answers.push(...said);
    }
  }
  await Promise.all(Array.from({ length: 4 }, meetOn));
  return answers;
}

/** Acknowledged: there, with its bytes. Refused: a tombstone, whose bytes wait to be deleted. */
async function compare(answers: readonly Answer[]): Promise<void> {
  const kept = answers.filter((answer) => answer.isKept);
  const refused = answers.filter((answer) => !answer.isKept);
  const jobs = answers.flatMap((answer) => (answer.jobId === undefined ? [] : [answer.jobId]));
  const [found] = await sql<[{ kept: number; gone: number; by_jobs: number; without_bytes: number; unnamed: number }]>`
    select
      (select count(*) from artifacts a join blobs b on b.id = a.blob_id
       where a.id = any(${kept.map((answer) => answer.artifact.id)}::uuid[]) and a.state = 'AVAILABLE' and b.state = 'AVAILABLE')::int as kept,
      (select count(*) from artifacts a where a.id = any(${refused.map((answer) => answer.artifact.id)}::uuid[]) and a.state = 'DELETED')::int as gone,
      (select count(*) from jobs j join artifacts a on a.id = j.artifact_id join blobs b on b.id = a.blob_id
       where j.id = any(${jobs}::uuid[]) and a.state = 'AVAILABLE' and b.state = 'AVAILABLE'
         and not exists (select 1 from object_deletions d where d.sha256 = b.sha256 and d.generation = b.generation))::int as by_jobs,
      (select count(*) from artifacts a join blobs b on b.id = a.blob_id where b.state <> 'AVAILABLE')::int as without_bytes,
      (select count(*) from blobs b where case b.state
         when 'AVAILABLE' then not exists (select 1 from artifacts a where a.blob_id = b.id)
         else not exists (select 1 from object_deletions d where d.blob_id = b.id) end)::int as unnamed`;
  expect(found).toEqual({
    kept: kept.length,
    gone: refused.length,
    by_jobs: jobs.length,
    without_bytes: 0,
    unnamed: 0,
  });
}

/** Neither side may win nearly always: then nothing was raced. */
function isRaced({ kept, refused }: { kept: number; refused: number }): boolean {
  return kept + refused === ROUNDS && Math.min(kept, refused) > ROUNDS / 20;
}

/** Splits into groups of 1 to 8, as a settle lane does. */
function groups<T>(all: readonly T[]): T[][] {
  const made: T[][] = [];
  for (let start = 0; start < all.length;) {
    const size = 1 + Math.floor(Math.random() * 8);
    made.push(all.slice(start, start + size).toSorted(() => Math.random() - 0.5));
    start += size;
  }
  return made;
}

/** One call for each artifact of a group, all at once. */
function each(all: readonly TestArtifact[], call: (artifact: TestArtifact) => Promise<boolean>): Meeting[] {
  return groups(all).map((artifacts) => ({
    artifacts,
    call: () => Promise.all(artifacts.map(async (artifact) => ({ artifact, isKept: await call(artifact) }))),
  }));
}

/** One call for a group of artifacts, each with a leased job. */
async function withJobs(
  all: readonly TestArtifact[],
  call: (pairs: readonly { artifact: TestArtifact; lease: JobLease }[]) => Promise<Answer[]>,
): Promise<Meeting[]> {
  const jobs = all.map((artifact) => newJob({ cacheKey: artifact.sha256, freshness: "ONE_HOUR" }));
  const taken = await leasesOf(database, jobs);
  return groups(all.map((artifact, index) => ({ artifact, lease: taken[index]! }))).map((pairs) => ({
    artifacts: pairs.map(({ artifact }) => artifact),
    call: () => call(pairs),
  }));
}

function settledTokens(verdicts: readonly { readonly verdict: string; readonly token: string }[]): Set<string> {
  return new Set(verdicts.flatMap((row) => (row.verdict === "SETTLED" ? [row.token] : [])));
}

test("A3 two thousand pins meet a deletion: one that was acknowledged finds its bytes, one that was refused is gone", async () => {
  const totals = await race((artifacts) =>
    Promise.resolve(
      each(artifacts, async ({ id }) => {
        const pin = { artifactId: id, callerId: "acme", owner: "a", retentionRevision: 1, expiresAt: FAR };
        const answer = await putPin(sql, pin, BY);
        if (!answer.ok) expect(answer.failure.code).toBe("GONE");
        return answer.ok;
      }),
    ),
  );
  expect(totals).toSatisfy(isRaced);
}, 30_000);

test("A3 two thousand jobs that saw the bytes meet a deletion: a settled one finds them, another is told and puts them anew", async () => {
  const totals = await race((artifacts) =>
    withJobs(artifacts, async (pairs) => {
      const verdicts = await settle(database, ...pairs.map(({ artifact, lease }) => succeededSeen(lease, artifact)));
      const settled = settledTokens(verdicts);
      const gone = pairs.filter(({ lease }) => !settled.has(lease.token));
      const again = await settle(database, ...gone.map(({ artifact, lease }) => succeeded(lease, artifact.sha256)));
      expect(settledTokens(again).size).toBe(gone.length);
      return pairs.map(({ artifact, lease }) => ({ artifact, isKept: settled.has(lease.token), jobId: lease.id }));
    }),
  );
  expect(totals).toSatisfy(isRaced);
}, 30_000);

test("A3 two thousand jobs that put the bytes meet a deletion: each finds bytes, the old ones or its own", async () => {
  const totals = await race((artifacts) =>
    withJobs(artifacts, async (pairs) => {
      const verdicts = await settle(database, ...pairs.map(({ artifact, lease }) => succeeded(lease, artifact.sha256)));
      expect(settledTokens(verdicts).size).toBe(pairs.length);
      const rows = await sql<{ id: string; artifact_id: string }[]>`
        select id, artifact_id from jobs where id = any(${pairs.map(({ lease }) => lease.id)}::uuid[])`;
      const named = new Map(rows.map((row) => [row.id, row.artifact_id]));
      return pairs.map(({ artifact, lease }) => ({
        artifact,
        isKept: named.get(lease.id) === artifact.id,
        jobId: lease.id,
      }));
    }),
  );
  expect(totals).toSatisfy(isRaced);
}, 30_000);

test("A3 two thousand stored answers are taken as they expire and are deleted: a job that took one finds its bytes", async () => {
  const validatedAtMs = Date.now();
  const totals = await race(async (artifacts) => {
    await sql`
      insert into cache_entries (key, caller_id, artifact_id, result, size_bytes, validated_at, expires_at)
      select a.sha256, 'acme', a.id, '{}', 5, ${new Date(validatedAtMs)}::timestamptz, clock_timestamp() - interval '1 s'
      from artifacts a where a.id = any(${artifacts.map((artifact) => artifact.id)}::uuid[])`;
    return withJobs(artifacts, async (pairs) => {
      // It had expired; now it expires within the time that taking it takes.
      const keys = pairs.map(({ artifact }) => artifact.sha256);
      await sql`
        update cache_entries set expires_at = clock_timestamp() + random() * interval '8 ms'
        where key = any(array(select decode(k, 'hex') from unnest(${keys}::text[]) as k)) and caller_id = 'acme'`;
      const hits = pairs.map(({ artifact, lease }) => ({
        ...lease,
        answer: { key: artifact.sha256, callerId: "acme", validatedAtMs },
        freshnessMs: 3_600_000,
      }));
      const settled = settledTokens(
        await finishFromCache(sql, hits, { ...OPTIONS, artifactRetentionMs: OPTIONS.jobRetentionMs }),
      );
      return pairs.map(({ artifact, lease }) => ({
        artifact,
        isKept: settled.has(lease.token),
        ...(settled.has(lease.token) ? { jobId: lease.id } : {}),
      }));
    });
  });
  expect(totals).toSatisfy(isRaced);
}, 30_000);

test("A6 two thousand downloads meet a deletion: the object of one that was signed outlives its URL", async () => {
  const totals = { kept: 0, refused: 0 };
  for (let round = 0; round < ROUNDS; round += WAVE) {
    const artifacts = await storeArtifacts(database, WAVE, { isDue: false });
    const answers = await meetAll(
      each(artifacts, ({ blobId, id, sha256 }) => {
        const expiresAt = new Date(Date.now() + REVIEW.urlMs);
        const object = { artifactId: id, sha256, generation: blobId };
        const download = { ...object, callerId: "acme", kind: "SERVICE", purpose: "ARTIFACT_DOWNLOAD" } as const;
        return recordDownload(sql, { ...download, auditId: uuidv7(), expiresAt }, BY);
      }),
    );
    // Nothing holds them: all go, and the object of one that was signed later than its URL.
    while ((await review(database)).reviewed > 0);
    const signed = answers.filter((answer) => answer.isKept).map((answer) => answer.artifact.id);
    const [found] = await sql<[{ outlived: number }]>`
      select count(*)::int as outlived
      from artifacts a
      join audit_events e on e.subject = 'artifact:' || a.id and e.action = 'artifact.download-signed'
      join object_deletions d on d.sha256 = a.sha256
      where a.id = any(${signed}::uuid[]) and a.state = 'DELETED' and d.due_at > (e.details ->> 'expiresAt')::timestamptz`;
    expect(found.outlived).toBe(signed.length);
    totals.kept += signed.length;
    totals.refused += answers.length - signed.length;
  }
  expect(totals).toSatisfy(isRaced);
}, 30_000);
