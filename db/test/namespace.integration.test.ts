import { createTestDatabase, type TestDatabase } from "@keble-scraper/testkit";
import postgres from "postgres";
import { afterEach, beforeEach, expect, test } from "vitest";
import { claimNamespace, completeNamespace } from "../src/commands/artifacts/index.ts";
import { migrate } from "../src/migrate.ts";
import { findNamespace } from "../src/queries/find-namespace.ts";
import { hasStoredRows } from "../src/queries/has-stored-rows.ts";
import { listNewestBlobs } from "../src/queries/list-newest-blobs.ts";

const BY = { actor: "system:test", requestId: null };
const PLACE = { kind: "LOCAL", prefix: "artifacts", directory: "/data" } as const;
const S3 = { kind: "S3", prefix: "artifacts", endpoint: "https://s3.example", bucket: "b-1" } as const;

let database: TestDatabase;
let owner: postgres.Sql;
let app: postgres.Sql;

beforeEach(async () => {
  database = await createTestDatabase({ migrate });
  owner = postgres(database.migrationUrl, { max: 8, onnotice: () => undefined });
  app = postgres(database.url, { max: 1, onnotice: () => undefined });
});
afterEach(async () => {
  await Promise.all([owner.end({ timeout: 1 }), app.end({ timeout: 1 })]);
  await database[Symbol.asyncDispose]();
});

const claim = (place: typeof PLACE | typeof S3 = PLACE, name = "test/a", rows: "REFUSE" | "ADOPT" = "REFUSE") =>
  claimNamespace(owner, { place, owner: name, rows }, BY, 1);

const audited = () => owner<{ action: string }[]>`select action, subject, details from audit_events order by id`;

/** A blob and its artifact, as an earlier version left them. */
async function leaveArtifact(): Promise<void> {
  await owner`
    insert into blobs (id, sha256, generation, size_bytes)
    values ('01900000-0000-7000-8000-000000000001', decode(repeat('ab', 32), 'hex'), '00000000deadbeef', 7)`;
  await owner`
    insert into artifacts (id, caller_id, blob_id, sha256, size_bytes, source_url, final_url, http_status, fetched_at)
    values ('01900000-0000-7000-8000-000000000002', 'acme', '01900000-0000-7000-8000-000000000001',
            decode(repeat('ab', 32), 'hex'), 7, 'https://a.example/', 'https://a.example/', 200, now())`;
}

test("A4 a claim is one row: incomplete until its mark was read back, then never changed by another claim", async () => {
  expect(await findNamespace(app)).toBeNull();
  const begun = await claim();
  expect(begun).toMatchObject({ state: "BEGUN", row: { ...PLACE, owner: "test/a", claimedAt: null }, adopted: null });
  expect(await claim()).toEqual({ state: "HELD", row: await findNamespace(owner) });
  expect(await audited()).toEqual([]);
  const id = begun.state === "BEGUN" ? begun.row.claim : "";
  expect(await completeNamespace(owner, "00000000-0000-4000-8000-000000000000", BY)).toBe(false);
  expect((await findNamespace(app))?.claimedAt).toBeNull();
  expect(await completeNamespace(owner, id, BY)).toBe(true);
  const done = await findNamespace(app);
  expect(done?.claimedAt).toBeInstanceOf(Date);
  expect(await completeNamespace(owner, id, BY)).toBe(true);
  for (const [place, name] of [
    [S3, "test/a"],
    [PLACE, "test/b"],
  ] as const) {
    expect(await claim(place, name)).toEqual({ state: "HELD", row: done });
  }
  expect(await findNamespace(owner)).toEqual(done);
  expect(await audited()).toMatchObject([
    { action: "store.claimed", subject: `store:${id}`, details: { owner: "test/a", directory: "/data", bucket: null } },
  ]);
});

test("A4 twenty claims at once write one row", async () => {
  const states = (await Promise.all(Array.from({ length: 20 }, () => claim()))).map(({ state }) => state);
  expect(states.filter((state) => state === "BEGUN")).toHaveLength(1);
  expect(states.filter((state) => state === "HELD")).toHaveLength(19);
});

test("A4 a claim that was never finished gives way to another place, unless artifacts are there", async () => {
  const first = await claim();
  const second = await claim(S3);
  expect(second).toMatchObject({ state: "BEGUN", row: { ...S3, directory: null }, replaced: { ...PLACE } });
  expect(first.state === "BEGUN" && (await completeNamespace(owner, first.row.claim, BY))).toBe(false);
  await leaveArtifact();
  expect(await claim()).toMatchObject({ state: "HELD", row: { ...S3 } });
});

test("A4 artifacts without a row are adopted only when that is said, and the audit says what", async () => {
  expect(await hasStoredRows(app)).toBe(false);
  await leaveArtifact();
  expect(await hasStoredRows(app)).toBe(true);
  expect(await listNewestBlobs(app, 5)).toEqual([{ sha256: "ab".repeat(32), generation: "00000000deadbeef" }]);
  expect(await claim()).toEqual({ state: "UNKNOWN_STORE" });
  expect(await findNamespace(owner)).toBeNull();
  expect(await claim(PLACE, "test/a", "ADOPT")).toMatchObject({ adopted: { artifacts: 1, blobs: 1, bytes: 7 } });
  expect(await audited()).toMatchObject([
    { action: "store.adopted", details: { artifacts: 1, blobs: 1, bytes: 7, owner: "test/a" } },
  ]);
});

test.each(["artifacts", "blobs", "object_deletions"])(
  "A4 a row of %s alone is enough to ask for its store",
  async (table) => {
    await leaveArtifact();
    await owner`
    insert into object_deletions (id, sha256, generation)
    values ('01900000-0000-7000-8000-000000000003', decode(repeat('cd', 32), 'hex'), '00000000deadbeef')`;
    if (table === "artifacts") await owner`update artifacts set state = 'DELETED', blob_id = null, deleted_at = now()`;
    else await owner`delete from artifacts`;
    if (table !== "blobs") await owner`delete from blobs`;
    if (table !== "object_deletions") await owner`delete from object_deletions`;
    expect(await hasStoredRows(app)).toBe(true);
  },
);

test("A4 the services' role may read which store is the database's and what was reset, and change neither", async () => {
  await claim();
  for (const statement of [
    app`insert into store_namespace (id, kind, prefix, directory, owner, claim) values (1, 'LOCAL', 'p', '/', 'o', gen_random_uuid())`,
    app`update store_namespace set owner = 'other'`,
    app`delete from store_namespace`,
    app`truncate store_namespace`,
    app`insert into reset_runs (campaign, state, audit_id, evidence) values ('c', 'RUNNING', gen_random_uuid(), '{}')`,
    app`update reset_runs set campaign = 'other'`,
    app`delete from reset_runs`,
    app`truncate reset_runs`,
  ]) {
    await expect(statement).rejects.toThrow(/permission denied/);
  }
  expect(await app`select 1 from store_namespace`).toHaveLength(1);
  expect(await app`select 1 from reset_runs`).toHaveLength(0);
});
