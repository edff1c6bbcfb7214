import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import {
  completeObjectDeletions,
  findArtifact,
  putPin,
  recordDownload,
  takeObjectDeletions,
} from "../src/commands/artifacts/index.ts";
import { deleteTombstones } from "../src/steps/delete-tombstones.ts";
import { eraseJobs } from "../src/steps/erase-jobs.ts";
import {
  DAY_MS,
  isDeletedByReview,
  leases,
  makeDue,
  review,
  REVIEW,
  settle,
  stateOf,
  storeArtifact,
  storeArtifacts,
  succeededSeen,
} from "./artifact-fixtures.ts";
import { failedRetryably, openTestDatabase, succeeded } from "./job-fixtures.ts";

const database = await openTestDatabase();
const sql = database.commands;
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(async () => {
  await sql`update artifacts set review_at = 'infinity'`;
  await sql`delete from object_deletions`;
});

const BY = { actor: uuidv7(), requestId: null };

/** How far ahead an artifact's next look is. */
async function dueInMs(id: string): Promise<number> {
  const [row] = await sql<[{ ms: number }]>`
    select (extract(epoch from review_at - clock_timestamp()) * 1000)::float8 as ms from artifacts where id = ${id}`;
  return row.ms;
}

async function addEntry(artifactId: string, lastsMs: number): Promise<Buffer> {
  const key = Buffer.from(uuidv7().replaceAll("-", "").repeat(2), "hex");
  await sql`
    insert into cache_entries (key, caller_id, artifact_id, result, size_bytes, validated_at, expires_at)
    values (${key}, 'acme', ${artifactId}, '{}', 5, clock_timestamp(), clock_timestamp() + make_interval(secs => ${lastsMs / 1000}::float8))`;
  return key;
}

async function entries(artifactId: string): Promise<number> {
  const rows = await sql`select 1 from cache_entries where artifact_id = ${artifactId}`;
  return rows.length;
}

/** Ages what is to be deleted until it is due. */
async function ageDeletions(): Promise<void> {
  await sql`update object_deletions set due_at = clock_timestamp() - interval '1 ms'`;
}

describe("what holds an artifact", () => {
  test("A2 a job holds its bytes for the artifact retention from its end, and no longer", async () => {
    const artifact = await storeArtifact(database);
    const [lease] = await leases(database, 1);
    await settle(database, succeededSeen(lease!, artifact));
    expect(await isDeletedByReview(database, artifact.id)).toBe(false);
    expect(Math.abs((await dueInMs(artifact.id)) - REVIEW.artifactRetentionMs)).toBeLessThan(10_000);
    // The review goes by the settings of now.
    await makeDue(database, artifact.id);
    await review(database, { artifactRetentionMs: 3_600_000 });
    expect(await dueInMs(artifact.id)).toBeLessThanOrEqual(3_600_000);
    await makeDue(database, artifact.id);
    await review(database, { artifactRetentionMs: 0 });
    expect(await stateOf(database, artifact.id)).toEqual({ state: "DELETED", blob: null });
  });

  test("A2 the youngest of several jobs counts", async () => {
    const artifact = await storeArtifact(database);
    const taken = await leases(database, 3);
    await settle(database, ...taken.map((lease) => succeededSeen(lease, artifact)));
    const [first] = taken;
    await sql.begin((tx) => eraseJobs(tx, [first!.id]));
    expect(await isDeletedByReview(database, artifact.id)).toBe(false);
    expect(await dueInMs(artifact.id)).toBeGreaterThan(REVIEW.artifactRetentionMs - 60_000);
  });

  test("A3 a job that is erased brings the review forward, and then nothing holds", async () => {
    const artifact = await storeArtifact(database);
    const [lease] = await leases(database, 1);
    await settle(database, succeededSeen(lease!, artifact));
    await review(database);
    expect(await dueInMs(artifact.id)).toBeGreaterThan(DAY_MS);
    await sql.begin((tx) => eraseJobs(tx, [lease!.id]));
    await review(database);
    expect(await stateOf(database, artifact.id)).toEqual({ state: "DELETED", blob: null });
  });

  test("A2 an attempt holds its evidence for the evidence retention", async () => {
    const [lease] = await leases(database, 1);
    const report = failedRetryably(lease!, { bytes: succeeded(lease!, uuidv7().replaceAll("-", "").repeat(2)).bytes });
    await settle(database, report);
    const [attempt] = await sql<[{ evidence_artifact_id: string }]>`
      select evidence_artifact_id from attempts where job_id = ${lease!.id}`;
    const id = attempt.evidence_artifact_id;
    expect(await isDeletedByReview(database, id)).toBe(false);
    expect(Math.abs((await dueInMs(id)) - REVIEW.evidenceRetentionMs)).toBeLessThan(10_000);
    await makeDue(database, id);
    await review(database, { evidenceRetentionMs: 0 });
    expect(await stateOf(database, id)).toMatchObject({ state: "DELETED" });
    await sql`update jobs set status = 'CANCELLED', finished_at = clock_timestamp() where id = ${lease!.id}`;
  });

  test("A2 a live pin holds until its end, one without an end for ever, a released one not at all", async () => {
    const artifact = await storeArtifact(database);
    const pin = (owner: string, retentionRevision: number, expiresAt: Date | null) =>
      putPin(sql, { artifactId: artifact.id, callerId: "acme", owner, retentionRevision, expiresAt }, BY);
    await pin("a", 1, new Date(Date.now() + DAY_MS));
    await pin("b", 1, new Date(0));
    await review(database);
    expect(Math.abs((await dueInMs(artifact.id)) - DAY_MS)).toBeLessThan(10_000);
    await pin("b", 2, null);
    await makeDue(database, artifact.id);
    await review(database);
    expect(await dueInMs(artifact.id)).toBe(Number.POSITIVE_INFINITY);
    await pin("b", 3, new Date(0));
    await review(database);
    expect(Math.abs((await dueInMs(artifact.id)) - DAY_MS)).toBeLessThan(10_000);
    await pin("a", 2, new Date(0));
    await review(database);
    expect(await stateOf(database, artifact.id)).toMatchObject({ state: "DELETED" });
  });

  test("A2 a cache entry holds its artifact until it expires, and goes with it", async () => {
    const artifact = await storeArtifact(database);
    await addEntry(artifact.id, DAY_MS);
    await addEntry(artifact.id, -1);
    expect(await isDeletedByReview(database, artifact.id)).toBe(false);
    expect(Math.abs((await dueInMs(artifact.id)) - DAY_MS)).toBeLessThan(10_000);
    await sql`update cache_entries set expires_at = clock_timestamp() - interval '1 s' where artifact_id = ${artifact.id}`;
    expect(await isDeletedByReview(database, artifact.id)).toBe(true);
    expect(await entries(artifact.id)).toBe(0);
  });

  test("A2 of several holds the longest counts, whichever it is", async () => {
    const artifact = await storeArtifact(database);
    const [lease] = await leases(database, 1);
    await settle(database, succeededSeen(lease!, artifact));
    await addEntry(artifact.id, 200 * DAY_MS);
    await makeDue(database, artifact.id);
    await review(database);
    expect(await dueInMs(artifact.id)).toBeGreaterThan(199 * DAY_MS);
  });

  test("a review looks at what is due, longest due first, and no more than it may", async () => {
    const artifacts = await storeArtifacts(database, 5, { isDue: false });
    for (const [index, { id }] of artifacts.entries()) {
      await sql`update artifacts set review_at = clock_timestamp() - make_interval(secs => ${10 - index}) where id = ${id}`;
    }
    expect(await review(database, { limit: 2 })).toEqual({ reviewed: 2, deleted: 2, freed: 2 });
    const states = await Promise.all(artifacts.map(async ({ id }) => (await stateOf(database, id))?.state));
    expect(states).toEqual(["DELETED", "DELETED", "AVAILABLE", "AVAILABLE", "AVAILABLE"]);
    expect(await review(database)).toEqual({ reviewed: 3, deleted: 3, freed: 3 });
    expect(await review(database)).toEqual({ reviewed: 0, deleted: 0, freed: 0 });
  });
});

describe("what a deletion leaves", () => {
  test("A2 equal bytes get a new id after a deletion, and the old one stays gone", async () => {
    const artifact = await storeArtifact(database);
    expect(await isDeletedByReview(database, artifact.id)).toBe(true);
    const [first, second] = await leases(database, 2);
    const [seen] = await settle(database, succeededSeen(first!, artifact));
    expect(seen?.verdict).toBe("BYTES_GONE");
    const [put] = await settle(database, succeeded(first!, artifact.sha256));
    expect(put?.verdict).toBe("SETTLED");
    await settle(database, succeeded(second!, artifact.sha256));
    const rows = await sql<{ id: string; state: string }[]>`
      select id, state from artifacts where sha256 = decode(${artifact.sha256}, 'hex') order by deleted_at nulls last`;
    expect(rows.map((row) => row.state)).toEqual(["DELETED", "AVAILABLE"]);
    expect(rows[1]?.id).not.toBe(artifact.id);
    const found = await findArtifact(database.reads, artifact.id, "acme");
    expect(found).toMatchObject({ artifact: { id: artifact.id, state: "DELETED" }, object: null });
  });

  test("A3 a blob stays while another caller's artifact lives, and goes with the last", async () => {
    const [artifact] = await storeArtifacts(database, 1, { isDue: false });
    const [lease] = await leases(database, 1, "other");
    await settle(database, succeededSeen(lease!, artifact!));
    expect(await isDeletedByReview(database, artifact!.id)).toBe(true);
    const [theirs] = await sql<[{ id: string }]>`select id from artifacts where blob_id = ${artifact!.blobId}`;
    expect(await stateOf(database, theirs.id)).toEqual({ state: "AVAILABLE", blob: "AVAILABLE" });
    expect(await sql`select 1 from object_deletions`).toHaveLength(0);
    await sql.begin((tx) => eraseJobs(tx, [lease!.id]));
    expect(await review(database)).toEqual({ reviewed: 1, deleted: 1, freed: 1 });
    const [queued] = await sql<[{ blob_id: string; ms: number }]>`
      select blob_id, (extract(epoch from due_at - clock_timestamp()) * 1000)::float8 as ms from object_deletions`;
    expect(queued.blob_id).toBe(artifact!.blobId);
    // No signed URL may outlive its object: the longest, and a minute for clocks that differ.
    expect(queued.ms).toBeGreaterThan(REVIEW.urlMs + 50_000);
    expect(queued.ms).toBeLessThanOrEqual(REVIEW.urlMs + 60_000);
  });

  test("A3 two callers' artifacts of one blob that go together free it once", async () => {
    const [artifact] = await storeArtifacts(database, 1, { isDue: false });
    const [lease] = await leases(database, 1, "other");
    await settle(database, succeededSeen(lease!, artifact!));
    await sql.begin((tx) => eraseJobs(tx, [lease!.id]));
    await makeDue(database, artifact!.id);
    expect(await review(database)).toEqual({ reviewed: 2, deleted: 2, freed: 1 });
  });

  test("A3 an object is given out once its time has come, and its row goes with its blob when it is gone", async () => {
    const artifact = await storeArtifact(database);
    await review(database);
    expect(await takeObjectDeletions(sql, 10)).toEqual([]);
    await ageDeletions();
    const [taken, ...rest] = await takeObjectDeletions(sql, 10);
    expect(taken).toEqual({ id: taken?.id, sha256: artifact.sha256, generation: artifact.blobId });
    expect(rest).toEqual([]);
    // Taken, and not said to be gone: it is nobody else's for now, and given out again later.
    expect(await takeObjectDeletions(sql, 10)).toEqual([]);
    expect(await sql`select 1 from blobs where id = ${artifact.blobId} and state = 'DELETING'`).toHaveLength(1);
    await ageDeletions();
    expect(await takeObjectDeletions(sql, 10)).toEqual([taken]);
    expect(await completeObjectDeletions(sql, [taken!.id])).toBe(1);
    expect(await sql`select 1 from blobs where id = ${artifact.blobId}`).toHaveLength(0);
    expect(await completeObjectDeletions(sql, [taken!.id])).toBe(0);
    expect(await stateOf(database, artifact.id)).toEqual({ state: "DELETED", blob: null });
  });

  test("A3 an object that a living blob names is never given out, whoever queued it", async () => {
    const artifact = await storeArtifact(database);
    await sql`
      insert into object_deletions (id, sha256, generation)
      values (${uuidv7()}, decode(${artifact.sha256}, 'hex'), ${artifact.blobId}), (${uuidv7()}, decode(${artifact.sha256}, 'hex'), 'other')`;
    const taken = await takeObjectDeletions(sql, 10);
    expect(taken.map((object) => object.generation)).toEqual(["other"]);
  });

  test("A1 of fifty equal puts one object is left, and the others are given out to be deleted", async () => {
    const taken = await leases(database, 50);
    const sha256 = uuidv7().replaceAll("-", "").repeat(2);
    const reports = taken.map((lease) => succeeded(lease, sha256));
    await Promise.all(reports.map((report) => settle(database, report)));
    const [blob] = await sql<
      { generation: string }[]
    >`select generation from blobs where sha256 = decode(${sha256}, 'hex')`;
    const lost = await takeObjectDeletions(sql, 100);
    expect(lost).toHaveLength(49);
    const generations = reports.map(({ bytes }) => (bytes?.kind === "PUT" ? bytes.generation : ""));
    expect(new Set([...lost.map((object) => object.generation), blob?.generation])).toEqual(new Set(generations));
    expect(
      await completeObjectDeletions(
        sql,
        lost.map((object) => object.id),
      ),
    ).toBe(49);
  });

  test("A6 a deleted artifact has no download any more", async () => {
    const artifact = await storeArtifact(database);
    const download = () =>
      recordDownload(
        sql,
        {
          auditId: uuidv7(),
          artifactId: artifact.id,
          sha256: artifact.sha256,
          generation: artifact.blobId,
          callerId: "acme",
          kind: "SERVICE",
          purpose: "ARTIFACT_DOWNLOAD",
          expiresAt: new Date(),
        },
        BY,
      );
    expect(await download()).toBe(true);
    await review(database);
    expect(await download()).toBe(false);
  });

  test("A3 a tombstone stays until the audit clock, though the jobs that referred to it are erased before", async () => {
    const artifact = await storeArtifact(database);
    const [lease, failing] = await leases(database, 2);
    await settle(database, succeededSeen(lease!, artifact));
    const { bytes } = succeededSeen(failing!, artifact);
    await settle(database, failedRetryably(failing!, { bytes, next: "FINISH" }));
    await makeDue(database, artifact.id);
    expect(await review(database, { artifactRetentionMs: 0, evidenceRetentionMs: 0 })).toMatchObject({ deleted: 1 });
    await sql.begin((tx) => eraseJobs(tx, [lease!.id, failing!.id]));
    expect(await deleteTombstones(sql, 10)).toEqual({ deleted: 0, reviewed: 0 });
    expect(Math.abs((await dueInMs(artifact.id)) - 400 * DAY_MS)).toBeLessThan(10_000);
  });

  test("A3 a tombstone stays until the audit clock, and while a job or an attempt refers to it", async () => {
    const [plain, referred] = await storeArtifacts(database, 2);
    const [lease] = await leases(database, 1);
    await settle(database, succeededSeen(lease!, referred!));
    await putPin(
      sql,
      { artifactId: plain!.id, callerId: "acme", owner: "a", retentionRevision: 1, expiresAt: new Date(0) },
      BY,
    );
    expect(await review(database, { artifactRetentionMs: 0 })).toMatchObject({ deleted: 2 });
    expect(Math.abs((await dueInMs(plain!.id)) - 400 * DAY_MS)).toBeLessThan(10_000);
    expect(await deleteTombstones(sql, 10)).toEqual({ deleted: 0, reviewed: 0 });
    await makeDue(database, plain!.id, referred!.id);
    expect(await deleteTombstones(sql, 10)).toEqual({ deleted: 1, reviewed: 2 });
    expect(await stateOf(database, plain!.id)).toBeNull();
    expect(await stateOf(database, referred!.id)).toMatchObject({ state: "DELETED" });
    expect(await deleteTombstones(sql, 10)).toEqual({ deleted: 0, reviewed: 0 });
    await sql.begin((tx) => eraseJobs(tx, [lease!.id]));
    await makeDue(database, referred!.id);
    expect(await deleteTombstones(sql, 10)).toEqual({ deleted: 1, reviewed: 1 });
    // Nothing that still lives is ever taken for a tombstone.
    const living = await storeArtifact(database);
    expect(await deleteTombstones(sql, 10)).toEqual({ deleted: 0, reviewed: 0 });
    expect(await stateOf(database, living.id)).toMatchObject({ state: "AVAILABLE" });
  });
});
