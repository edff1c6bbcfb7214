import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "@keble-scraper/db";
import { createTestDatabase, startS3, type TestDatabase } from "@keble-scraper/testkit";
import postgres from "postgres";
import { afterEach, beforeEach, expect, it } from "vitest";
import { textOfProgram } from "./run-program.ts";

let folder: string;
let database: TestDatabase;
let owner: postgres.Sql;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "keble-claim-"));
  database = await createTestDatabase({ migrate });
  owner = postgres(database.migrationUrl, { max: 1, onnotice: () => undefined });
});
afterEach(async () => {
  await owner.end({ timeout: 1 });
  await database[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

function migrateCommand(env: Record<string, string> = {}, ...args: string[]): Promise<string> {
  return textOfProgram(["migrate", ...args], {
    SCRAPER_ENVIRONMENT: "test",
    SCRAPER_DATABASE_URL: database.url,
    SCRAPER_MIGRATION_DATABASE_URL: database.migrationUrl,
    SCRAPER_STATE_DIRECTORY: folder,
    SCRAPER_ARTIFACT_NAMESPACE_OWNER: "acme/main",
    SCRAPER_AUDIT_RETENTION_DAYS: "1.5",
    ...env,
  });
}

const markFile = () => join(folder, "artifacts", "artifacts", "owner");
const namespace = async () => (await owner`select owner, claim, claimed_at from store_namespace`)[0];
const actions = async () =>
  (await owner<{ action: string }[]>`select action from audit_events order by id`).map((row) => row.action);

/** An object's row as an earlier version left it; the object too when that is said. */
async function leaveArtifact(object: "WITH_OBJECT" | "WITHOUT_OBJECT"): Promise<void> {
  const bytes = Buffer.from("kept");
  const sha256 = createHash("sha256").update(bytes).digest();
  const [blob] = await owner<{ id: string }[]>`
    insert into blobs (id, sha256, generation, size_bytes) values (gen_random_uuid(), ${sha256}, ${"0".repeat(16)}, 4) returning id`;
  await owner`
    insert into artifacts (id, caller_id, blob_id, sha256, size_bytes, source_url, final_url, http_status, fetched_at)
    values (gen_random_uuid(), 'acme', ${blob?.id ?? null}, ${sha256}, 4, 'https://a.example/', 'https://a.example/', 200, now())`;
  if (object === "WITHOUT_OBJECT") return;
  const shard = join(folder, "artifacts", "artifacts", sha256.toString("hex").slice(0, 2));
  mkdirSync(shard, { recursive: true });
  writeFileSync(join(shard, `${sha256.toString("hex")}.${"0".repeat(16)}`), bytes);
}

it("A4 a claim that broke off is finished by the next run, wherever it broke off, and a finished one is left alone", async () => {
  expect(await migrateCommand()).toMatch(/Claimed the artifact store for acme\/main: \S+ artifacts$/);
  const [mark, row] = [readFileSync(markFile(), "utf8"), await namespace()];
  expect(JSON.parse(mark)).toEqual({ owner: "acme/main", claim: row?.["claim"] as string });
  expect(await migrateCommand()).toBe("The database is up to date");
  expect([readFileSync(markFile(), "utf8"), await namespace()]).toEqual([mark, row]);
  expect(await actions()).toEqual(["store.claimed"]);

  // Between the mark and the row's end.
  await owner`update store_namespace set claimed_at = null`;
  expect(await migrateCommand()).toContain("Claimed");
  // Between the row and the mark.
  await owner`update store_namespace set claimed_at = null`;
  unlinkSync(markFile());
  expect(await migrateCommand()).toContain("Claimed");
  expect(readFileSync(markFile(), "utf8")).toBe(mark);
  expect(await namespace()).toMatchObject({ claim: row?.["claim"] as string, claimed_at: expect.any(Date) as Date });
});

it("A4 a mark that was removed after its claim is not put back", async () => {
  await migrateCommand();
  unlinkSync(markFile());
  await expect(migrateCommand()).rejects.toMatchObject({
    reason: "STORE_REFUSED",
    message: expect.stringMatching(/^MARK_MISSING: /) as string,
  });
  expect(() => readFileSync(markFile())).toThrow("ENOENT");
});

it("A4 a store that another database of the same owner claimed is refused", async () => {
  await migrateCommand();
  await owner`delete from store_namespace`;
  await expect(migrateCommand()).rejects.toMatchObject({
    message: expect.stringMatching(/^MARK_OF_ANOTHER_CLAIM: .*another database of the owner "acme\/main"/) as string,
  });
  expect(await namespace()).toMatchObject({ claimed_at: null });
});

it("A4 artifacts without a row about their store are refused, until an operator says that this store holds them", async () => {
  await leaveArtifact("WITHOUT_OBJECT");
  await expect(migrateCommand()).rejects.toMatchObject({
    reason: "STORE_REFUSED",
    message: expect.stringMatching(/^ROWS_WITHOUT_NAMESPACE: .*migrate --adopt-artifacts/) as string,
  });
  await expect(migrateCommand({}, "--adopt-artifacts")).rejects.toMatchObject({
    reason: "STORE_REFUSED",
    message: expect.stringContaining("holds none of the 1 newest objects") as string,
  });
  expect([await namespace(), await actions()]).toEqual([undefined, []]);
  await owner`delete from artifacts`;
  await owner`delete from blobs`;
  await leaveArtifact("WITH_OBJECT");
  expect(await migrateCommand({}, "--adopt-artifacts")).toContain("Adopted 1 artifacts: 1 objects of 4 bytes");
  expect(await actions()).toEqual(["store.adopted", "store.claimed"]);
  const [audit] = await owner<{ hours: number; details: object }[]>`
    select round(extract(epoch from expires_at - occurred_at) / 3600)::int as hours, details from audit_events order by id limit 1`;
  expect(audit).toMatchObject({ hours: 36, details: { artifacts: 1, blobs: 1, bytes: 4, owner: "acme/main" } });
  expect(await migrateCommand({}, "--adopt-artifacts")).toBe("The database is up to date");
});

it("A4 a store that is down ends migrate as a missing server does, and the next run goes on", async () => {
  await using s3 = await startS3();
  const env = {
    SCRAPER_S3_ENDPOINT: s3.url,
    SCRAPER_S3_BUCKET: s3.bucket,
    SCRAPER_S3_ACCESS_KEY_ID: s3.accessKeyId,
    SCRAPER_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
  };
  await s3.stop();
  await expect(migrateCommand(env)).rejects.toMatchObject({
    reason: "SERVER_MISSING",
    message: "The artifact store can't be asked (ECONNREFUSED). Nothing is lost: run this again when it answers.",
  });
  await s3.start();
  expect(await migrateCommand(env)).toContain(
    `Claimed the artifact store for acme/main: ${s3.url} ${s3.bucket} artifacts`,
  );
  expect([...s3.objects().keys()]).toEqual(["artifacts/owner"]);
});

it("a store's address is given up only while its claim is unfinished and the database is empty", async () => {
  await migrateCommand();
  await owner`update store_namespace set claimed_at = null, directory = '/elsewhere'`;
  unlinkSync(markFile());
  expect(await migrateCommand()).toMatch(
    /Gave up the claim that was begun for \/elsewhere artifacts, which held nothing\nClaimed/,
  );
  await owner`update store_namespace set directory = '/elsewhere'`;
  await expect(migrateCommand()).rejects.toMatchObject({
    message: expect.stringMatching(/^OTHER_DIRECTORY: /) as string,
  });
  await owner`update store_namespace set claimed_at = null`;
  await leaveArtifact("WITH_OBJECT");
  await expect(migrateCommand()).rejects.toMatchObject({
    message: expect.stringMatching(/^OTHER_DIRECTORY: /) as string,
  });
  expect(await namespace()).toMatchObject({ claimed_at: null });
});
