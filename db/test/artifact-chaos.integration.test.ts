import { createHash, randomBytes, randomInt } from "node:crypto";
import { v7 as uuidv7 } from "uuid";
import { afterAll, expect, test } from "vitest";
import {
  completeObjectDeletions,
  findArtifact,
  listUnnamedObjects,
  putPin,
  queueOrphan,
  recordDownload,
  reviewArtifacts,
  takeBlobToVerify,
  takeObjectDeletions,
} from "../src/commands/artifacts/index.ts";
import { claimDeliveries, registerEndpoint, settleDeliveries } from "../src/commands/callbacks/index.ts";
import {
  type AttemptReport,
  finishFromCache,
  type JobLease,
  recoverLeases,
  settleJobs,
} from "../src/commands/fetching/index.ts";
import { deleteJob, submitJobs } from "../src/commands/intake/index.ts";
import { purgeBatch } from "../src/commands/retention/index.ts";
import { listAvailableBlobs } from "../src/queries/list-available-blobs.ts";
import { listCachedAnswers } from "../src/queries/list-cached-answers.ts";
import { BY, delivered, newEndpoint } from "./callback-fixtures.ts";
import { claim, failedRetryably, newJob, openTestDatabase, succeeded } from "./job-fixtures.ts";

/*
 * Everything that keeps bytes and everything that lets them go, at once and in no order, with holds of milliseconds, over
 * a few bodies that several callers share. After each round all stands still, and what the rows promise is held against
 * the objects; in the end every hold ends, and nothing may be left. KEBLE_LONG=1 goes on for two minutes.
 */

const ROUNDS_MS = process.env["KEBLE_LONG"] === "1" ? 120_000 : 3_500;
const ROUND_MS = 500;
const ACTORS = 10;
const SEED = Number(process.env["KEBLE_SEED"] ?? randomInt(2 ** 31));

const CALLERS = ["acme", "blue", "corp"];
const BODIES = Array.from({ length: 6 }, (_, index) => Buffer.from(`body ${index}`));
const hashOf = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
const DAY_MS = 86_400_000;
const HOLDS = { artifactRetentionMs: 80, evidenceRetentionMs: 40 };
const SETTLE = { ...HOLDS, abortGraceMs: 2_000, jobRetentionMs: 120, cacheRetentionMs: 60 };
const REVIEW = { ...HOLDS, limit: 20, urlMs: 30, auditRetentionDays: 50 / DAY_MS };
const PURGE = { batch: 20, rowsPerMinute: 1_000_000, auditDays: 400, since: null };
const KINDS = ["events", "jobs", "cache", "flights", "tombstones"] as const;

const database = await openTestDatabase();
const sql = database.commands;
afterAll(() => database[Symbol.asyncDispose]());

let state = SEED;
/** 0 to 1, of the seed. What runs at once is another thing: a seed gives the same acts, not the same order. */
function random(): number {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}
const below = (count: number) => Math.floor(random() * count);
const pick = <T>(all: readonly T[]): T => all[below(all.length)]!;
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** The store: what is at `<sha256>/<generation>`. */
const objects = new Map<string, Buffer>();
/** What workers that died before their settle had put: all that a scrub of the listing may find. */
const abandoned = new Set<string>();
/** The last signed URL of each object, and what was done that must be in the audit. */
const signedUntil = new Map<string, number>();
const audited = { "job.deleted": 0, "artifact.download-signed": 0, pins: 0 };
const broken: string[] = [];
const seen: Record<string, number> = {};
const count = (what: string) => void (seen[what] = (seen[what] ?? 0) + 1);

const endpoints = CALLERS.map((callerId) => newEndpoint({ callerId, name: "orders" }));
for (const endpoint of endpoints) await registerEndpoint(sql, endpoint, BY);

/** Leases by id, with the body that each job fetches. */
const bodyOf = new Map<string, Buffer>();

async function submit(): Promise<void> {
  const callerId = pick(CALLERS);
  const jobs = Array.from({ length: 1 + below(4) }, () => {
    const body = pick(BODIES);
    const job = newJob({
      cacheKey: random() < 0.6 ? hashOf(Buffer.concat([Buffer.from("key"), body])) : null,
      freshness: "ONE_HOUR",
      callbackEndpoint: random() < 0.4 ? "orders" : null,
      attemptBudget: 2,
    });
    bodyOf.set(job.id, body);
    return job;
  });
  await submitJobs(sql, { callerId, jobs, queuedMax: null });
}

async function bytesOf(lease: JobLease, isPutAnyway: boolean): Promise<AttemptReport["bytes"]> {
  const body = bodyOf.get(lease.id)!;
  const sha256 = hashOf(body);
  const base = succeeded(lease, sha256).bytes!;
  const [blob] = isPutAnyway ? [] : await listAvailableBlobs(sql, [sha256]);
  if (blob !== undefined) return { ...base, kind: "SEEN", blobId: blob.id };
  const generation = randomBytes(8).toString("hex");
  objects.set(`${sha256}/${generation}`, body);
  return { ...base, kind: "PUT", blobId: uuidv7(), generation };
}

async function work(): Promise<void> {
  const leases = await claim(database, 1 + below(5), { of: random() < 0.8 ? "TRUSTED" : "SUSPECTS" });
  const reports: AttemptReport[] = [];
  for (const lease of leases) {
    if (lease.cacheKey !== null && random() < 0.6) {
      const callerId = random() < 0.5 ? "" : lease.callerId;
      const [answer] = (await listCachedAnswers(sql, [{ key: lease.cacheKey, callerId }])).answers;
      if (answer?.isAnswer === true) {
        const [hit] = await finishFromCache(sql, [{ ...lease, answer, freshnessMs: 3_600_000 }], SETTLE);
        count(`cache ${hit!.verdict}`);
        if (hit!.verdict === "SETTLED") continue;
      }
    }
    const bytes = await bytesOf(lease, random() < 0.3);
    const fate = random();
    if (fate < 0.08) {
      count("killed after the put");
      if (bytes?.kind === "PUT") abandoned.add(`${bytes.sha256}/${bytes.generation}`);
    } else if (fate < 0.25) reports.push(failedRetryably(lease, { bytes, next: random() < 0.5 ? "FINISH" : "RETRY" }));
    else {
      const isShared = random() < 0.5;
      const cache = { key: lease.cacheKey!, isShared, marksOwn: false, etag: null, lastModified: null };
      reports.push({ ...succeeded(lease), bytes, cache: lease.cacheKey === null ? null : cache });
    }
  }
  if (random() < 0.3) await pause(below(15));
  for (let left = reports; left.length > 0;) {
    const verdicts = new Map((await settleJobs(sql, left, SETTLE)).map((row) => [row.token, row.verdict]));
    for (const verdict of verdicts.values()) count(`settle ${verdict}`);
    const gone = left.filter((report) => verdicts.get(report.token) === "BYTES_GONE");
    left = await Promise.all(
      gone.map(async (report) => ({
        ...report,
        bytes: await bytesOf({ id: report.id, token: report.token } as JobLease, true),
      })),
    );
  }
}

async function anyArtifact(): Promise<{ id: string; caller_id: string } | null> {
  const [row] = await sql<{ id: string; caller_id: string }[]>`
    select id, caller_id from artifacts order by state, id desc offset ${below(12)} limit 1`;
  return row ?? null;
}

async function pin(): Promise<void> {
  const artifact = await anyArtifact();
  if (artifact === null) return;
  const end = random();
  const answer = await putPin(
    sql,
    {
      artifactId: artifact.id,
      callerId: random() < 0.5 ? artifact.caller_id : null,
      owner: pick(["a", "b", "c"]),
      retentionRevision: 1 + below(2_000),
      expiresAt: end < 0.15 ? null : new Date(Date.now() + (end < 0.6 ? below(150) : -1_000)),
    },
    BY,
  );
  count(answer.ok ? `pin ${answer.value.applied ? "applied" : "stale"}` : `pin ${answer.failure.code}`);
  if (answer.ok && answer.value.applied) audited.pins += 1;
}

async function download(): Promise<void> {
  const artifact = await anyArtifact();
  if (artifact === null) return;
  const found = await findArtifact(database.reads, artifact.id, artifact.caller_id);
  if (found?.object == null) return;
  const { sha256, generation } = found.object;
  if (!objects.has(`${sha256}/${generation}`)) return;
  const until = Date.now() + REVIEW.urlMs;
  const isRecorded = await recordDownload(
    sql,
    {
      auditId: uuidv7(),
      artifactId: artifact.id,
      callerId: artifact.caller_id,
      kind: "SERVICE",
      purpose: "ARTIFACT_DOWNLOAD",
      expiresAt: new Date(until),
      sha256,
      generation,
    },
    BY,
  );
  count(isRecorded ? "download" : "download GONE");
  if (!isRecorded) return;
  audited["artifact.download-signed"] += 1;
  signedUntil.set(`${sha256}/${generation}`, until);
}

async function erase(): Promise<void> {
  const [job] = await sql<{ id: string }[]>`
    select id from jobs where finished_at is not null order by id offset ${below(8)} limit 1`;
  if (job === undefined) return;
  const answer = await deleteJob(sql, { id: job.id, callerId: null }, BY);
  count(answer.ok ? "erased" : `erase ${answer.failure.code}`);
  if (answer.ok) audited["job.deleted"] += 1;
}

async function deliver(): Promise<void> {
  const { leases } = await claimDeliveries(sql, { slots: 5, leaseSeconds: 60, afterEndpointId: null });
  if (leases.length === 0) return;
  await settleDeliveries(
    sql,
    leases.map((lease) => delivered(lease)),
    { eventRetentionMs: below(60), jobRetentionMs: below(120) },
  );
}

async function purge(): Promise<void> {
  const kind = pick(KINDS);
  const answer = await purgeBatch(sql, { ...PURGE, kind });
  count(`purge ${kind} ${answer.verdict === "PURGED" ? (answer.rows > 0 ? "rows" : "none") : answer.verdict}`);
}

/** Lets the minute that a signed URL's clock may be off pass at once, and what a dead deleter had taken be due again. */
async function age(): Promise<void> {
  await sql`
    update object_deletions set due_at = due_at - interval '60 s'
    where id = any (array(select id from object_deletions where due_at > clock_timestamp() + interval '50 s' for update skip locked))`;
}

async function review(): Promise<void> {
  const { deleted } = await reviewArtifacts(sql, REVIEW);
  if (deleted > 0) count("marked");
}

async function deleteObjects(): Promise<void> {
  const gone: string[] = [];
  for (const { id, sha256, generation } of await takeObjectDeletions(sql, 1 + below(6))) {
    if (random() < 0.1) continue;
    const key = `${sha256}/${generation}`;
    if ((signedUntil.get(key) ?? 0) > Date.now()) broken.push(`${key} went before its last URL`);
    objects.delete(key);
    count("object gone");
    if (random() > 0.1) gone.push(id);
  }
  if (random() < 0.3) await pause(below(10));
  await completeObjectDeletions(sql, gone);
}

async function verify(): Promise<void> {
  await takeBlobToVerify(sql, 5);
}

const ACTS = [
  submit,
  work,
  work,
  work,
  pin,
  pin,
  download,
  erase,
  deliver,
  purge,
  purge,
  age,
  review,
  review,
  deleteObjects,
  verify,
];

/** Nothing runs: what rows promise is there. */
async function inspect(): Promise<void> {
  const available = await sql<{ id: string; sha256: string; own: string; state: string; generation: string }[]>`
    select a.id, encode(a.sha256, 'hex') as sha256, encode(b.sha256, 'hex') as own, b.state, b.generation
    from artifacts a join blobs b on b.id = a.blob_id`;
  for (const { id, sha256, own, state: blobState, generation } of available) {
    const bytes = objects.get(`${own}/${generation}`);
    if (blobState !== "AVAILABLE" || sha256 !== own) broken.push(`${id} is on a blob that is ${blobState}`);
    if (bytes === undefined || hashOf(bytes) !== sha256) broken.push(`${id} has lost its bytes`);
  }
  const held = await sql<{ id: string; why: string }[]>`
    select a.id, h.why from (
      select artifact_id as id, 'a job' as why from jobs
      where finished_at + make_interval(secs => ${HOLDS.artifactRetentionMs / 1000}) > clock_timestamp()
      union all select evidence_artifact_id, 'evidence' from attempts
      where finished_at + make_interval(secs => ${HOLDS.evidenceRetentionMs / 1000}) > clock_timestamp()
      union all select artifact_id, 'a pin' from artifact_pins where coalesce(expires_at, 'infinity') > clock_timestamp()
      union all select artifact_id, 'an answer' from cache_entries where expires_at > clock_timestamp()
    ) h join artifacts a on a.id = h.id where a.state = 'DELETED'`;
  for (const { id, why } of held) broken.push(`${id} was deleted, though held by ${why}`);
  const stuck = await sql<{ id: string }[]>`
    select b.id from blobs b where case b.state
      when 'AVAILABLE' then not exists (select 1 from artifacts a where a.blob_id = b.id)
      else not exists (select 1 from object_deletions d where d.blob_id = b.id) end`;
  for (const { id } of stuck) broken.push(`blob ${id} is nobody's, and will never go`);
  const overdue = await sql<{ id: string }[]>`
    select a.id from artifacts a where a.state = 'AVAILABLE' and a.review_at > clock_timestamp() + interval '10 s'
      and not exists (select 1 from artifact_pins p where p.artifact_id = a.id and p.expires_at is null)`;
  for (const { id } of overdue) broken.push(`${id} is looked at too late`);
}

async function deadlocks(): Promise<number> {
  const [row] = await sql<[{ deadlocks: number }]>`
    select deadlocks::int from pg_stat_database where datname = current_database()`;
  return row.deadlocks;
}

/** Every hold ends, every clock runs out, and what killed workers left is recovered and found. */
async function drain(): Promise<void> {
  await sql`update jobs set lease_until = clock_timestamp() - interval '1 s' where lease_token is not null`;
  await recoverLeases(sql, { limit: 10_000, jobRetentionMs: 0 });
  for (;;) {
    const leases = [...(await claim(database, 50)), ...(await claim(database, 1, { of: "SUSPECTS" }))];
    if (leases.length === 0) break;
    await settleJobs(
      sql,
      leases.map((lease) => failedRetryably(lease, { next: "FINISH" })),
      SETTLE,
    );
  }
  for (;;) {
    const { leases } = await claimDeliveries(sql, { slots: 50, leaseSeconds: 60, afterEndpointId: null });
    if (leases.length === 0) break;
    await settleDeliveries(
      sql,
      leases.map((lease) => delivered(lease)),
      { eventRetentionMs: 0, jobRetentionMs: 0 },
    );
  }
  const pins = await sql<{ artifact_id: string; owner: string }[]>`
    select p.artifact_id, p.owner from artifact_pins p join artifacts a on a.id = p.artifact_id
    where a.state = 'AVAILABLE' and p.expires_at is null`;
  for (const { artifact_id: artifactId, owner } of pins) {
    const release = { artifactId, callerId: null, owner, retentionRevision: 9_999, expiresAt: new Date(0) };
    if ((await putPin(sql, release, BY)).ok) audited.pins += 1;
  }
  await pause(250);
  for (let round = 0; round < 40; round += 1) {
    let moved = 0;
    // A day passes: what is left of deleted artifacts is looked at again.
    await sql`update artifacts set review_at = review_at - interval '1 day' where state = 'DELETED'`;
    for (const kind of KINDS) {
      const answer = await purgeBatch(sql, { ...PURGE, kind, batch: 1_000 });
      moved += answer.verdict === "PURGED" ? answer.rows : 1;
    }
    moved += (await reviewArtifacts(sql, { ...REVIEW, limit: 1_000 })).reviewed;
    const listed = [...objects.keys()]
      .filter((key) => abandoned.has(key))
      .map((key) => ({ sha256: key.slice(0, 64), generation: key.slice(65) }));
    for (const orphan of await listUnnamedObjects(sql, listed.slice(0, 1_000))) await queueOrphan(sql, orphan, 400);
    await age();
    const taken = await takeObjectDeletions(sql, 1_000);
    for (const { sha256, generation } of taken) objects.delete(`${sha256}/${generation}`);
    moved += await completeObjectDeletions(
      sql,
      taken.map(({ id }) => id),
    );
    if (moved === 0 && objects.size === 0) break;
    await pause(60);
  }
}

test(
  "A3 whatever keeps and lets go of bytes at once: nothing held is lost, and nothing is left",
  async () => {
    console.info(`seed ${SEED}`);
    const before = await deadlocks();
    const end = performance.now() + ROUNDS_MS;
    while (performance.now() < end && broken.length === 0) {
      const roundEnd = performance.now() + ROUND_MS;
      await Promise.all(
        Array.from({ length: ACTORS }, async () => {
          while (performance.now() < roundEnd) await pick(ACTS)();
        }),
      );
      await inspect();
    }
    expect(broken).toEqual([]);
    await drain();
    const [left] = await sql`
    select (select count(*) from artifacts)::int as artifacts, (select count(*) from artifact_pins)::int as pins,
           (select count(*) from blobs)::int as blobs, (select count(*) from object_deletions)::int as deletions,
           (select count(*) from jobs)::int as jobs, (select count(*) from cache_entries)::int as entries`;
    expect({ ...left, objects: objects.size }).toEqual({
      artifacts: 0,
      pins: 0,
      blobs: 0,
      deletions: 0,
      jobs: 0,
      entries: 0,
      objects: 0,
    });
    const rows = await sql<{ action: string; count: number }[]>`
    select case when action like 'artifact.pin%' then 'pins' else action end as action, count(*)::int from audit_events
    where action in ('job.deleted', 'artifact.download-signed', 'artifact.pinned', 'artifact.pin-released') group by 1`;
    expect(Object.fromEntries(rows.map((row) => [row.action, row.count]))).toEqual(audited);
    expect(await deadlocks()).toBe(before);
    if (process.env["KEBLE_LONG"] === "1") console.info(seen);
  },
  ROUNDS_MS + 30_000,
);
