import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BinaryKey, createStore } from "@keble-scraper/artifact-store";
import type { DownloadPurpose, Principal } from "@keble-scraper/contract";
import { createDatabase, type Database, migrate } from "@keble-scraper/db";
import { claimTestStore } from "@keble-scraper/db/testing";
import { createInternalClient, parseSettings, type Settings } from "@keble-scraper/service";
import { createTestDatabase, type S3Server, startS3, type TestDatabase } from "@keble-scraper/testkit";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Artifacts, createArtifacts } from "../src/app.ts";
import type { ArtifactsRouter } from "../src/router.ts";
import { captureLog, type CapturedLog, putBytes } from "./serving.ts";

const never = new AbortController().signal;
const SERVICE_TOKEN = "a-service-token-of-the-tests";
const SECRET = "keble/test+secret/of/this/test";
const PREFIX = "kept/artifacts";
/** The bucket's clock ahead of ours, in milliseconds. */
const time = { aheadMs: 0 };
let directory = "";
let s3: S3Server;
let testDatabase: TestDatabase;
let database: Database;
let settings: Settings;
let log: CapturedLog;
let artifacts: Artifacts;
let calls: ReturnType<typeof createInternalClient<ArtifactsRouter>>;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "keble-s3-downloads-"));
  s3 = await startS3({ secretAccessKey: SECRET, now: () => Date.now() + time.aheadMs });
  testDatabase = await createTestDatabase({ migrate });
  const pools = { applicationName: "test", commandConnections: 2, readConnections: 1, statementTimeoutMs: 20_000 };
  database = createDatabase({ url: testDatabase.url, ...pools });
  const parsed = parseSettings({
    SCRAPER_ENVIRONMENT: "test",
    SCRAPER_DATABASE_URL: testDatabase.url,
    SCRAPER_REDIS_URL: "redis://127.0.0.1:1",
    SCRAPER_SERVICE_TOKEN: SERVICE_TOKEN,
    SCRAPER_SECRET_KEY: "5a".repeat(32),
    SCRAPER_INTERNAL_PORT: "0",
    SCRAPER_S3_ENDPOINT: s3.url,
    SCRAPER_S3_BUCKET: s3.bucket,
    SCRAPER_S3_ACCESS_KEY_ID: s3.accessKeyId,
    SCRAPER_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
    SCRAPER_S3_PREFIX: PREFIX,
    SCRAPER_DOWNLOAD_URL_SECONDS: "60",
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  settings = parsed.value;
  await claimTestStore(settings, testDatabase);
  log = captureLog();
  artifacts = createArtifacts(settings, { logger: log.logger });
  await artifacts.start();
  calls = createInternalClient<ArtifactsRouter>({
    url: artifacts.url,
    serviceToken: SERVICE_TOKEN,
    timeoutMs: 20_000,
    part: "artifacts",
  });
});

afterAll(async () => {
  await calls.close();
  await artifacts.stop(0);
  await database.stop(performance.now() + 1000);
  await testDatabase[Symbol.asyncDispose]();
  await s3[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

const shop: Principal = { keyId: uuidv7(), kind: "SERVICE", callerId: "shop", scopes: ["artifacts:download"] };
const operator: Principal = { keyId: uuidv7(), kind: "OPERATOR", callerId: null, scopes: [] };

/** An artifact of `shop` with its blob and its object. `name` is where its object is in the bucket. */
async function storeArtifact(
  text: string,
  contentType = "text/csv; charset=utf-8",
): Promise<{ id: string; key: BinaryKey; name: string }> {
  const store = createStore(settings.artifacts.store);
  await store.start(never);
  const bytes = Buffer.from(text);
  const key = await putBytes(store, directory, bytes);
  await store.stop(0);
  const [id, blobId] = [uuidv7(), uuidv7()];
  const sha256 = Buffer.from(key.sha256, "hex");
  await database.commands`
    insert into blobs (id, sha256, generation, size_bytes)
    values (${blobId}, ${sha256}, ${key.generation}, ${bytes.byteLength})`;
  await database.commands`
    insert into artifacts (id, caller_id, blob_id, sha256, size_bytes, content_type, source_url, final_url, http_status, fetched_at)
    values (${id}, 'shop', ${blobId}, ${sha256}, ${bytes.byteLength}, ${contentType},
            'https://shop.example.com/', 'https://shop.example.com/p/été list.csv?token=t', 200, '2026-11-30T17:00:00.123Z')`;
  return { id, key, name: `${PREFIX}/${key.sha256}/${key.generation}` };
}

async function download(principal: Principal, artifactId: string, purpose: DownloadPurpose = "ARTIFACT_DOWNLOAD") {
  return calls.client.createDownload.mutate({ principal, artifactId, requestId: "request-1", purpose });
}

async function signed(principal: Principal, artifactId: string, purpose?: DownloadPurpose) {
  const answer = await download(principal, artifactId, purpose);
  if (!answer.ok) throw new Error(answer.failure.code);
  return answer.value;
}

async function auditOf(artifactId: string) {
  const rows = await database.commands<{ id: string; actor: string; details: Record<string, unknown> }[]>`
    select id, actor, details from audit_events where subject = ${`artifact:${artifactId}`} order by id`;
  return rows.map((row) => ({ ...row }));
}

test("A6 a link of the bucket gives the bytes as an inert attachment, straight from the bucket, under its audit id", async () => {
  const { id, key, name } = await storeArtifact("a;b\n1;2\n");
  const { url, auditId, expiresAt, sha256, sizeBytes } = await signed(shop, id);
  expect(artifacts.downloadsUrl).toBe(null);
  expect(url.startsWith(`${s3.url}/${s3.bucket}/${name}?`)).toBe(true);
  expect({ sha256, sizeBytes }).toEqual({ sha256: key.sha256, sizeBytes: 8 });
  expect(await auditOf(id)).toEqual([
    {
      id: auditId,
      actor: shop.keyId,
      details: { kind: "SERVICE", purpose: "ARTIFACT_DOWNLOAD", expiresAt, sha256, generation: key.generation },
    },
  ]);
  const answer = await fetch(url);
  expect([answer.status, await answer.text()]).toEqual([200, "a;b\n1;2\n"]);
  expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  expect(answer.headers.get("content-disposition")).toBe(
    "attachment; filename=_t__list.csv; filename*=UTF-8''%C3%A9t%C3%A9_list.csv",
  );
  const [line] = s3.accessLog("S3").filter((entry) => entry.includes(auditId));
  expect(line).toContain(" REST.GET.OBJECT ");
  expect(line).toContain(`x-keble-audit-id=${auditId}`);
});

test("A6 what a browser would run is served as octets, whatever the target declared", async () => {
  const { id } = await storeArtifact("<script>alert(1)</script>", "text/html");
  const answer = await fetch((await signed(shop, id)).url);
  expect(answer.headers.get("content-type")).toBe("application/octet-stream");
  expect(answer.headers.get("content-disposition")).toMatch(/^attachment;/);
});

test("A6 a link without its audit id, with another, with another type or at another object is refused", async () => {
  const [{ id }, other] = [await storeArtifact("signed"), await storeArtifact("not signed")];
  const { auditId, url } = await signed(shop, id);
  const { name } = await storeArtifact("a third");
  const without = new URL(url);
  without.searchParams.delete("x-keble-audit-id");
  const doubled = new URL(url);
  doubled.searchParams.append("x-keble-audit-id", uuidv7());
  const typed = new URL(url);
  typed.searchParams.set("response-content-type", "text/html");
  const elsewhere = new URL(url);
  elsewhere.pathname = `/${s3.bucket}/${name}`;
  for (const changed of [without.href, doubled.href, typed.href, elsewhere.href, url.replace(auditId, uuidv7())]) {
    expect((await fetch(changed)).status).toBe(403);
  }
  expect((await fetch(url)).status).toBe(200);
  expect(await auditOf(other.id)).toEqual([]);
});

test("A6 a link ends at the second that was told, and not before", async () => {
  const { id } = await storeArtifact("for a minute");
  const before = Date.now();
  const { expiresAt, url } = await signed(shop, id);
  const endMs = Date.parse(expiresAt);
  expect(endMs % 1000).toBe(0);
  expect(endMs - before).toBeGreaterThan(59_000);
  expect(endMs - Date.now()).toBeLessThanOrEqual(60_000);
  const { searchParams } = new URL(url);
  const date = (searchParams.get("X-Amz-Date") ?? "").replace(
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/,
    "$1-$2-$3T$4:$5:$6Z",
  );
  expect(Date.parse(date) + Number(searchParams.get("X-Amz-Expires")) * 1000).toBe(endMs);
  time.aheadMs = endMs - Date.now() - 500;
  expect((await fetch(url)).status).toBe(200);
  time.aheadMs = endMs - Date.now() + 1_000;
  expect((await fetch(url)).status).toBe(403);
  time.aheadMs = 0;
});

test("A6 an operator's download, and a job's content, have audit identities of their own", async () => {
  const { id } = await storeArtifact("of two kinds");
  const first = await signed(operator, id);
  const second = await signed(shop, id, "JOB_CONTENT");
  expect(
    (await auditOf(id)).map(({ id: auditId, actor, details }) => [auditId, actor, details["kind"], details["purpose"]]),
  ).toEqual([
    [first.auditId, operator.keyId, "OPERATOR", "ARTIFACT_DOWNLOAD"],
    [second.auditId, shop.keyId, "SERVICE", "JOB_CONTENT"],
  ]);
  expect((await fetch(second.url)).status).toBe(200);
});

test("A6 an object that is missing from the bucket, or cut short, is GONE and a finding, without an audit row", async () => {
  const [missing, damaged] = [await storeArtifact("missing"), await storeArtifact("damaged")];
  s3.remove(missing.name);
  await s3.damage(damaged.name, "TRUNCATE");
  for (const [{ id, key }, kind] of [
    [missing, "MISSING"],
    [damaged, "DAMAGED"],
  ] as const) {
    expect(await download(shop, id)).toMatchObject({ ok: false, failure: { code: "GONE" } });
    // Found again, it is the same finding.
    expect(await download(operator, id, "JOB_CONTENT")).toMatchObject({ ok: false, failure: { code: "GONE" } });
    expect(await auditOf(id)).toEqual([]);
    const findings = await database.commands<{ kind: string; generation: string }[]>`
      select kind, generation from store_findings where sha256 = ${Buffer.from(key.sha256, "hex")}`;
    expect([...findings]).toEqual([{ kind, generation: key.generation }]);
  }
});

test("A6 a deleted artifact has no link, and a link from before ends with its object", async () => {
  const { id, name } = await storeArtifact("deleted");
  const { url } = await signed(shop, id);
  await database.commands`
    update artifacts set state = 'DELETED', blob_id = null, deleted_at = clock_timestamp() where id = ${id}`;
  expect(await download(shop, id)).toMatchObject({ ok: false, failure: { code: "GONE" } });
  expect(await auditOf(id)).toHaveLength(1);
  expect((await fetch(url)).status).toBe(200);
  s3.remove(name);
  expect((await fetch(url)).status).toBe(404);
});

// The gateway gives this failure as 503 with Retry-After.
test("A6 while the bucket is down or refuses us, there is no link, no audit row and no finding, and the reason is logged", async () => {
  const { id } = await storeArtifact("unreachable");
  const findings = async () => (await database.commands`select 1 from store_findings where kind = 'MISSING'`).length;
  const before = await findings();
  const fault = s3.fail({ operation: "HeadObject", times: 1 }, { kind: "STATUS", status: 403, code: "AccessDenied" });
  expect(await download(shop, id)).toMatchObject({ ok: false, failure: { code: "DEPENDENCY_UNAVAILABLE" } });
  fault.lift();
  await s3.stop();
  expect(await download(shop, id)).toMatchObject({ ok: false, failure: { code: "DEPENDENCY_UNAVAILABLE" } });
  expect(await log.line("store.unavailable")).toMatchObject({ level: "warn", artifactId: id });
  expect(await auditOf(id)).toEqual([]);
  expect(await findings()).toBe(before);
  await s3.start();
  expect((await download(shop, id)).ok).toBe(true);
});

test("A6 a bucket that answers after the caller's time leaves no audit row", async () => {
  const { id } = await storeArtifact("too late");
  s3.fail({ operation: "HeadObject" }, { kind: "DELAY", until: 2_000 });
  const call = { principal: shop, artifactId: id, requestId: "request-2", purpose: "ARTIFACT_DOWNLOAD" } as const;
  const context = { deadlineAt: Date.now() + 1_000 };
  await expect(calls.client.createDownload.mutate(call, { context })).rejects.toMatchObject({ reason: "TIMEOUT" });
  expect(await log.line("download.given_up")).toMatchObject({ artifactId: id });
  expect(await auditOf(id)).toEqual([]);
});

test("no log line holds a signature, a token of a URL or a secret", () => {
  const text = JSON.stringify(log.lines);
  for (const secret of ["X-Amz-Signature", "token=t", SERVICE_TOKEN, SECRET, s3.accessKeyId]) {
    expect(text).not.toContain(secret);
  }
});
