import { randomBytes } from "node:crypto";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import {
  advanceListing,
  type BlobToVerify,
  listUnnamedObjects,
  openListing,
  putBackBlob,
  putPin,
  queueOrphan,
  recordFinding,
  retireBlob,
  takeBlobToVerify,
} from "../src/commands/artifacts/index.ts";
import { leases, settle, stateOf, storeArtifact, storeArtifacts, succeededSeen } from "./artifact-fixtures.ts";
import { openTestDatabase, succeeded } from "./job-fixtures.ts";

const database = await openTestDatabase();
const sql = database.commands;
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(async () => {
  await sql`update blobs set verified_at = clock_timestamp()`;
  await sql`delete from store_findings`;
  await sql`update store_scrub set cursor = null, pass_started_at = null, pass_ended_at = null`;
});

const BY = { actor: "system:test", requestId: null };
const LOST = { kind: "DAMAGED", urlMs: 300_000, auditRetentionDays: 400 } as const;
const newHash = () => randomBytes(32).toString("hex");
const toBlob = (artifact: { blobId: string; sha256: string }) => ({
  id: artifact.blobId,
  sha256: artifact.sha256,
  generation: artifact.blobId,
});
const findings = () => sql`select kind, encode(sha256, 'hex') as sha256, generation from store_findings`;

describe("a finding", () => {
  test("A6 stands once for an object and kind, as if found last", async () => {
    const finding = { kind: "MISSING", sha256: newHash(), generation: "a".repeat(16) } as const;
    await Promise.all([1, 2, 3, 4].map(() => recordFinding(sql, { ...finding, retentionDays: 1 })));
    await recordFinding(sql, { ...finding, kind: "DAMAGED", retentionDays: 1 });
    await recordFinding(sql, { ...finding, generation: "b".repeat(16), retentionDays: 1 });
    await sql`update store_findings set found_at = found_at - interval '1 day', expires_at = expires_at - interval '1 day'`;
    await recordFinding(sql, { ...finding, retentionDays: 2 });
    const rows = await sql`
      select kind, generation, found_at > clock_timestamp() - interval '1 hour' as is_fresh,
             round(extract(epoch from expires_at - found_at) / 3600)::int as hours
      from store_findings order by kind, generation`;
    expect(rows).toEqual([
      { kind: "DAMAGED", generation: "a".repeat(16), is_fresh: false, hours: 24 },
      { kind: "MISSING", generation: "a".repeat(16), is_fresh: true, hours: 48 },
      { kind: "MISSING", generation: "b".repeat(16), is_fresh: false, hours: 24 },
    ]);
  });
});

test("A6 an object that a download finds missing is read next, however lately it was read", async () => {
  const [artifact] = await storeArtifacts(database, 2, { isDue: false });
  await recordFinding(sql, { kind: "ORPHAN", ...toBlob(artifact!), retentionDays: 1 });
  expect(await takeBlobToVerify(sql, 3_600_000)).toBeNull();
  await recordFinding(sql, { kind: "MISSING", ...toBlob(artifact!), retentionDays: 1 });
  expect((await takeBlobToVerify(sql, 3_600_000))?.id).toBe(artifact!.blobId);
});

describe("bytes that are lost", () => {
  test("A3 take their artifacts of all callers with them, pinned ones too, and leave finding, audit and a deletion", async () => {
    const mine = await storeArtifact(database);
    const [lease] = await leases(database, 1, "other");
    await settle(database, succeededSeen(lease!, mine));
    await putPin(
      sql,
      { artifactId: mine.id, callerId: "acme", owner: "legal", retentionRevision: 1, expiresAt: null },
      BY,
    );
    await sql`
      insert into cache_entries (key, caller_id, artifact_id, result, size_bytes, validated_at, expires_at)
      values (${randomBytes(32)}, 'acme', ${mine.id}, '{}', 5, clock_timestamp(), clock_timestamp() + interval '1 day')`;

    expect(await retireBlob(sql, toBlob(mine), LOST)).toEqual({ verdict: "RETIRED", artifacts: 2 });

    const artifacts = await sql<{ id: string; callerId: string }[]>`
      select id, caller_id as "callerId" from artifacts
      where sha256 = decode(${mine.sha256}, 'hex') and state = 'DELETED' and blob_id is null
        and review_at > clock_timestamp() + interval '399 days' order by caller_id`;
    expect(artifacts.map((row) => row.callerId)).toEqual(["acme", "other"]);
    const deletion = await sql`
      select b.state, d.due_at > clock_timestamp() + interval '350 s' as is_after_urls
      from object_deletions d join blobs b on b.id = d.blob_id where b.id = ${mine.blobId}`;
    expect(deletion).toEqual([{ state: "DELETING", is_after_urls: true }]);
    expect(await sql`select 1 from cache_entries where artifact_id = ${mine.id}`).toEqual([]);
    expect(await findings()).toEqual([{ kind: "DAMAGED", sha256: mine.sha256, generation: mine.blobId }]);
    const audit = await sql`
      select actor, caller_id, details from audit_events
      where action = 'artifact.lost' and subject = any(${artifacts.map((row) => `artifact:${row.id}`)}) order by caller_id`;
    const details = { kind: "DAMAGED", sha256: mine.sha256 };
    expect(audit).toEqual([
      { actor: "system:scrub", caller_id: "acme", details },
      { actor: "system:scrub", caller_id: "other", details },
    ]);
  });

  // A blob whose bytes are gone, left AVAILABLE, would make every later fetch of them skip its put: lost for ever.
  test("A1 are stored anew when they are fetched again: the job that saw the old blob is told, and puts them", async () => {
    const old = await storeArtifact(database);
    const [lease] = await leases(database, 1);
    await retireBlob(sql, toBlob(old), LOST);
    const [seen] = await settle(database, succeededSeen(lease!, old));
    expect(seen?.verdict).toBe("BYTES_GONE");
    const [put] = await settle(database, succeeded(lease!, old.sha256));
    expect(put?.verdict).toBe("SETTLED");
    const rows = await sql<{ id: string; blob_id: string | null; state: string }[]>`
      select id, blob_id, state from artifacts where sha256 = decode(${old.sha256}, 'hex') order by state`;
    expect(rows).toMatchObject([{ state: "AVAILABLE" }, { id: old.id, state: "DELETED", blob_id: null }]);
    expect(rows[0]?.blob_id).not.toBe(old.blobId);
  });

  test("are given up once, and only as the object that was read", async () => {
    const artifact = await storeArtifact(database);
    const blob = toBlob(artifact);
    expect(await retireBlob(sql, { ...blob, generation: uuidv7() }, LOST)).toEqual({ verdict: "CHANGED" });
    expect(await stateOf(database, artifact.id)).toEqual({ state: "AVAILABLE", blob: "AVAILABLE" });
    const answers = await Promise.all([1, 2, 3].map(() => retireBlob(sql, blob, LOST)));
    expect(answers.filter((answer) => answer.verdict === "RETIRED")).toHaveLength(1);
    expect(await retireBlob(sql, blob, LOST)).toEqual({ verdict: "CHANGED" });
    expect(await sql`select 1 from audit_events where subject = ${`artifact:${artifact.id}`}`).toHaveLength(1);
  });

  test("A3 wait for no lock: a blob that a settle holds, or an artifact that somebody holds, is left for later", async () => {
    const artifact = await storeArtifact(database);
    for (const lock of [
      sql`select 1 from blobs where id = ${artifact.blobId} for key share`,
      sql`select 1 from artifacts where id = ${artifact.id} for key share`,
    ]) {
      await sql.begin(async (tx) => {
        await tx`${lock}`;
        expect(await retireBlob(sql, toBlob(artifact), LOST)).toEqual({ verdict: "BUSY" });
      });
    }
    expect(await stateOf(database, artifact.id)).toEqual({ state: "AVAILABLE", blob: "AVAILABLE" });
    expect(await findings()).toEqual([]);
  });

  test("A3 and settles that see them at the same time: no artifact is left on a blob that is given up", async () => {
    const rounds = 150;
    const artifacts = await storeArtifacts(database, rounds, { isDue: false });
    const held = await leases(database, rounds, "other");
    const verdicts = await Promise.all(
      artifacts.map(async (artifact, index) => {
        const [[settled], retired] = await Promise.all([
          settle(database, succeededSeen(held[index]!, artifact)),
          retireBlob(sql, toBlob(artifact), LOST),
        ]);
        return [settled?.verdict, retired.verdict];
      }),
    );
    for (const [index, [settled, retired]] of verdicts.entries()) {
      const left = await sql`
        select b.state, count(*)::int as artifacts from artifacts a join blobs b on b.id = a.blob_id
        where a.sha256 = decode(${artifacts[index]!.sha256}, 'hex') group by b.state`;
      const expected = retired === "RETIRED" ? [] : [{ state: "AVAILABLE", artifacts: settled === "SETTLED" ? 2 : 1 }];
      expect(left).toEqual(expected);
    }
  });
});

describe("blobs to verify", () => {
  const take = () => takeBlobToVerify(sql, 3_600_000);
  const age = (ids: readonly string[]) => sql`
    update blobs set verified_at = clock_timestamp() - interval '2 h' - (array_position(${ids}::uuid[], id) * interval '1 s')
    where id = any(${ids}::uuid[])`;

  test("are given out longest unread first, each once; what is put back comes first again", async () => {
    const ids = (await storeArtifacts(database, 3, { isDue: false })).map((artifact) => artifact.blobId);
    expect(await take()).toBeNull();
    await age(ids);
    const first = await take();
    expect(first).toMatchObject({ id: ids[2], generation: ids[2], sizeBytes: 5 });
    expect((await take())?.id).toBe(ids[1]);
    await putBackBlob(sql, first!);
    expect([(await take())?.id, (await take())?.id, await take()]).toEqual([ids[2], ids[0], null]);
  });

  test("no two workers are given the same", async () => {
    const ids = (await storeArtifacts(database, 100, { isDue: false })).map((artifact) => artifact.blobId);
    await age(ids);
    const taken: BlobToVerify[] = [];
    async function takeAll(): Promise<void> {
      for (let blob = await take(); blob !== null; blob = await take()) taken.push(blob);
    }
    await Promise.all([takeAll(), takeAll(), takeAll(), takeAll()]);
    expect(taken.map((blob) => blob.id).toSorted()).toEqual(ids.toSorted());
    await age(ids.slice(0, 2));
    await sql.begin(async (tx) => {
      expect((await takeBlobToVerify(tx, 3_600_000))?.id).toBe(ids[1]);
      expect((await take())?.id).toBe(ids[0]);
    });
  });

  test("a settle that has one locked keeps it from nobody, nor the other way round", async () => {
    const { blobId } = await storeArtifact(database);
    await age([blobId]);
    await sql.begin(async (tx) => {
      await tx`select 1 from blobs where id = ${blobId} for key share`;
      expect((await take())?.id).toBe(blobId);
    });
  });
});

describe("objects of a listing", () => {
  test("A3 are unnamed unless an AVAILABLE blob of that generation or a deletion names them", async () => {
    const stored = await storeArtifact(database);
    const deleting = await storeArtifact(database);
    await retireBlob(sql, toBlob(deleting), LOST);
    const named = [stored, deleting].map(({ sha256, blobId }) => ({ sha256, generation: blobId }));
    const unnamed = [
      { sha256: stored.sha256, generation: uuidv7() },
      { sha256: newHash(), generation: stored.blobId },
    ];
    expect(await listUnnamedObjects(sql, [...named, ...unnamed])).toEqual(unnamed);
    expect(await listUnnamedObjects(sql, [])).toEqual([]);
  });

  test("A3 an orphan is queued once, due now, with its finding; one that a row names is not", async () => {
    const stored = await storeArtifact(database);
    const orphan = { sha256: stored.sha256, generation: uuidv7() };
    expect(await queueOrphan(sql, { sha256: stored.sha256, generation: stored.blobId }, 400)).toBe(false);
    expect(await queueOrphan(sql, orphan, 400)).toBe(true);
    expect(await queueOrphan(sql, orphan, 400)).toBe(false);
    expect(await findings()).toEqual([{ kind: "ORPHAN", ...orphan }]);
    const due = await sql`
      select blob_id, due_at <= clock_timestamp() as is_due from object_deletions where generation = ${orphan.generation}`;
    expect(due).toEqual([{ blob_id: null, is_due: true }]);
    expect(await stateOf(database, stored.id)).toEqual({ state: "AVAILABLE", blob: "AVAILABLE" });
  });
});

describe("the pass over the listing", () => {
  const DAY = { everyMs: 86_400_000, ageMs: 60_000 };

  test("goes on where it was left, ends, and begins again a day after it began", async () => {
    const first = await openListing(sql, DAY);
    expect(first).toMatchObject({ cursor: null });
    expect(await advanceListing(sql, first!, "a")).toBe(true);
    const second = await openListing(sql, DAY);
    expect(second).toMatchObject({ cursor: "a", passStartedAt: first!.passStartedAt });
    expect(await advanceListing(sql, second!, null)).toBe(true);
    expect(await openListing(sql, DAY)).toBeNull();
    await sql`update store_scrub set pass_started_at = pass_started_at - interval '1 day'`;
    expect(await openListing(sql, DAY)).toMatchObject({ cursor: null });
  });

  test("begins anew when its place was lost", async () => {
    await sql`delete from store_scrub`;
    expect(await openListing(sql, DAY)).toMatchObject({ cursor: null });
    await sql`update store_scrub set pass_started_at = pass_started_at - interval '1 day'`;
  });

  test("a worker that another has overtaken moves nothing", async () => {
    const place = await openListing(sql, DAY);
    expect(await advanceListing(sql, place!, "b")).toBe(true);
    expect(await advanceListing(sql, place!, "a")).toBe(false);
    expect(await openListing(sql, DAY)).toMatchObject({ cursor: "b" });
  });
});
