import { mkdtemp, readdir, rm, truncate, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BinaryKey, createStore } from "@keble-scraper/artifact-store";
import type { Principal } from "@keble-scraper/contract";
import { createDatabase, type Database, migrate } from "@keble-scraper/db";
import { claimTestStore } from "@keble-scraper/db/testing";
import { createInternalClient, parseSettings, type Settings } from "@keble-scraper/service";
import { createTestDatabase, type TestDatabase, untilBlocked } from "@keble-scraper/testkit";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Artifacts, createArtifacts } from "../src/app.ts";
import type { ArtifactsRouter } from "../src/router.ts";
import { ask, type CapturedLog, captureLog, putBytes } from "./serving.ts";

const never = new AbortController().signal;
const SERVICE_TOKEN = "a-service-token-of-the-tests";
const time = { offsetMs: 0 };
let directory = "";
let testDatabase: TestDatabase;
let database: Database;
let settings: Settings;
let log: CapturedLog;
let artifacts: Artifacts;
let calls: ReturnType<typeof createInternalClient<ArtifactsRouter>>;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "keble-artifacts-"));
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
    SCRAPER_LOCAL_ARTIFACT_DIRECTORY: join(directory, "store"),
    SCRAPER_LOCAL_ARTIFACT_BASE_URL: "http://127.0.0.1:0",
    SCRAPER_DOWNLOAD_URL_SECONDS: "60",
    SCRAPER_AUDIT_RETENTION_DAYS: "1.5",
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  settings = parsed.value;
  await claimTestStore(settings, testDatabase);
  log = captureLog();
  const clock = { monotonicMs: () => performance.now(), wallMs: () => Date.now() + time.offsetMs };
  artifacts = createArtifacts(settings, { clock, logger: log.logger });
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
  await rm(directory, { recursive: true });
});

function service(callerId: string): Principal {
  return { keyId: uuidv7(), kind: "SERVICE", callerId, scopes: ["artifacts:read", "artifacts:download"] };
}
const operator: Principal = { keyId: uuidv7(), kind: "OPERATOR", callerId: null, scopes: [] };

/** An artifact of `callerId` with its blob and its object. */
async function storeArtifact(
  callerId: string,
  bytes: Uint8Array,
  contentType: string | null = "text/html; charset=utf-8",
): Promise<{ id: string; key: BinaryKey; path: string }> {
  const store = createStore(settings.artifacts.store);
  await store.start(never);
  const key = await putBytes(store, directory, bytes);
  const [id, blobId] = [uuidv7(), uuidv7()];
  const sha256 = Buffer.from(key.sha256, "hex");
  await database.commands`
    insert into blobs (id, sha256, generation, size_bytes)
    values (${blobId}, ${sha256}, ${key.generation}, ${bytes.byteLength})`;
  await database.commands`
    insert into artifacts (id, caller_id, blob_id, sha256, size_bytes, content_type, source_url, final_url, http_status, fetched_at)
    values (${id}, ${callerId}, ${blobId}, ${sha256}, ${bytes.byteLength}, ${contentType},
            'https://shop.example.com/', 'https://shop.example.com/p/page.html?token=t', 200, '2026-11-30T17:00:00.123Z')`;
  const path = join(directory, "store", "artifacts", key.sha256.slice(0, 2), `${key.sha256}.${key.generation}`);
  return { id, key, path };
}

async function markDeleted(id: string): Promise<void> {
  await database.commands`update artifacts set state = 'DELETED', blob_id = null, deleted_at = clock_timestamp() where id = ${id}`;
}

type AuditRow = {
  id: string;
  caller_id: string | null;
  action: string;
  actor: string;
  request_id: string | null;
  details: Record<string, unknown>;
};
async function auditOf(artifactId: string): Promise<AuditRow[]> {
  return database.commands<AuditRow[]>`
    select id, caller_id, action, actor, request_id, details from audit_events
    where subject = ${`artifact:${artifactId}`} order by id`;
}

async function findingsOf(key: BinaryKey): Promise<{ kind: string; hours: number }[]> {
  const rows = await database.commands<{ kind: string; hours: number }[]>`
    select kind, round(extract(epoch from expires_at - found_at) / 3600)::int as hours from store_findings
    where sha256 = ${Buffer.from(key.sha256, "hex")} and generation = ${key.generation}`;
  return [...rows];
}

async function download(principal: Principal, artifactId: string, requestId = uuidv7()) {
  return calls.client.createDownload.mutate({ principal, artifactId, requestId, purpose: "ARTIFACT_DOWNLOAD" });
}

test("the audit row of a download is kept for as long as the settings say", async () => {
  const { id } = await storeArtifact("shop", Buffer.from("kept"));
  await download(service("shop"), id);
  const rows = await database.commands<{ hours: number }[]>`
    select round(extract(epoch from expires_at - occurred_at) / 3600)::int as hours
    from audit_events where subject = ${`artifact:${id}`}`;
  expect([...rows]).toEqual([{ hours: 36 }]);
});

async function fetched(url: string) {
  const { origin, pathname, search } = new URL(url);
  return ask(origin, pathname + search);
}

test("an artifact's record is its own caller's and the operators', and another caller's is not found", async () => {
  const { id, key } = await storeArtifact("shop", Buffer.from("record"));
  const own = await calls.client.getArtifact.query({ principal: service("shop"), id });
  expect(own).toEqual({
    ok: true,
    value: {
      id,
      sha256: key.sha256,
      sizeBytes: 6,
      contentType: "text/html; charset=utf-8",
      sourceUrl: "https://shop.example.com/",
      finalUrl: "https://shop.example.com/p/page.html?token=t",
      httpStatus: 200,
      fetchedAt: "2026-11-30T17:00:00.123Z",
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      state: "AVAILABLE",
    },
  });
  expect(await calls.client.getArtifact.query({ principal: operator, id })).toEqual(own);
  const other = await calls.client.getArtifact.query({ principal: service("other"), id });
  const missing = await calls.client.getArtifact.query({ principal: service("shop"), id: uuidv7() });
  expect(other).toMatchObject({ ok: false, failure: { code: "NOT_FOUND" } });
  expect(missing).toEqual(other);
  await markDeleted(id);
  expect(await calls.client.getArtifact.query({ principal: service("shop"), id })).toMatchObject({
    ok: true,
    value: { state: "DELETED", sha256: key.sha256 },
  });
});

test("A6 a download carries the audit id that its row has, and gives the bytes as an inert attachment", async () => {
  const html = Buffer.from("<script>alert(1)</script>");
  const { id, key } = await storeArtifact("shop", html);
  const principal = service("shop");
  const before = Date.now();
  const answer = await download(principal, id, "request-1");
  if (!answer.ok) throw new Error(answer.failure.code);
  const { auditId, expiresAt, sha256, sizeBytes, url } = answer.value;
  expect({ sha256, sizeBytes }).toEqual({ sha256: key.sha256, sizeBytes: html.byteLength });
  expect(new URL(url).searchParams.getAll("x-keble-audit-id")).toEqual([auditId]);
  expect(Date.parse(expiresAt) % 1000).toBe(0);
  expect(Date.parse(expiresAt) - before).toBeGreaterThan(59_000);
  expect(Date.parse(expiresAt) - before).toBeLessThan(80_000);
  expect(await auditOf(id)).toEqual([
    {
      id: auditId,
      caller_id: "shop",
      action: "artifact.download-signed",
      actor: principal.keyId,
      request_id: "request-1",
      details: {
        kind: "SERVICE",
        purpose: "ARTIFACT_DOWNLOAD",
        expiresAt,
        sha256: key.sha256,
        generation: key.generation,
      },
    },
  ]);
  const asked = await fetched(url);
  expect(asked.status).toBe(200);
  expect(asked.body.equals(html)).toBe(true);
  expect(asked.headers["content-type"]).toBe("application/octet-stream");
  expect(asked.headers["content-disposition"]).toBe("attachment; filename=page.html");
  const other = url.replace(auditId, uuidv7());
  expect((await fetched(other)).status).toBe(403);
  expect((await fetched(url)).status).toBe(200);
  time.offsetMs = 61_000;
  expect((await fetched(url)).status).toBe(403);
  time.offsetMs = 0;
});

test("A6 an operator's download has its own audit identity", async () => {
  const { id } = await storeArtifact("shop", Buffer.from("operator"), null);
  const answer = await download(operator, id);
  expect(answer.ok).toBe(true);
  const [row] = await auditOf(id);
  expect(row).toMatchObject({ actor: operator.keyId, caller_id: "shop", details: { kind: "OPERATOR" } });
});

test("A6 another caller gets no download, and leaves no audit row", async () => {
  const { id } = await storeArtifact("shop", Buffer.from("not yours"));
  expect(await download(service("other"), id)).toMatchObject({ ok: false, failure: { code: "NOT_FOUND" } });
  expect(await download(service("shop"), uuidv7())).toMatchObject({ ok: false, failure: { code: "NOT_FOUND" } });
  expect(await auditOf(id)).toEqual([]);
});

test("a deleted artifact has no download", async () => {
  const { id } = await storeArtifact("shop", Buffer.from("deleted"));
  await markDeleted(id);
  expect(await download(service("shop"), id)).toMatchObject({ ok: false, failure: { code: "GONE" } });
  expect(await auditOf(id)).toEqual([]);
});

test("A6 a missing or shortened object is GONE and a finding for the scrub, without an audit row", async () => {
  const missing = await storeArtifact("shop", Buffer.from("missing"));
  await unlink(missing.path);
  expect(await download(service("shop"), missing.id)).toMatchObject({ ok: false, failure: { code: "GONE" } });
  expect(await log.line("scrub.object_missing")).toMatchObject({
    level: "error",
    artifactId: missing.id,
    sha256: missing.key.sha256,
    generation: missing.key.generation,
  });
  expect(await auditOf(missing.id)).toEqual([]);
  expect(await findingsOf(missing.key)).toEqual([{ kind: "MISSING", hours: 36 }]);

  const damaged = await storeArtifact("shop", Buffer.from("damaged"));
  await truncate(damaged.path, 3);
  expect(await download(service("shop"), damaged.id)).toMatchObject({ ok: false, failure: { code: "GONE" } });
  expect(await log.line("scrub.object_damaged")).toMatchObject({ artifactId: damaged.id, sizeBytes: 7, foundBytes: 3 });
  expect(await findingsOf(damaged.key)).toEqual([{ kind: "DAMAGED", hours: 36 }]);
});

// The mark takes the row's lock first: without a lock of its own a download could be signed after the mark had looked,
// and outlive the bytes.
test("A6 a download that meets a deletion waits for it, and is then refused", async () => {
  const { id } = await storeArtifact("shop", Buffer.from("racing"));
  let answer: ReturnType<typeof download> | undefined;
  await database.commands.begin(async (tx) => {
    await tx`select id from artifacts where id = ${id} for update`;
    answer = download(service("shop"), id);
    await untilBlocked(database.commands);
    await tx`update artifacts set state = 'DELETED', blob_id = null, deleted_at = clock_timestamp() where id = ${id}`;
  });
  expect(await answer).toMatchObject({ ok: false, failure: { code: "GONE" } });
  expect(await auditOf(id)).toEqual([]);
});

test("A6 when the audit row can't be written no URL leaves", async () => {
  const { id } = await storeArtifact("shop", Buffer.from("unaudited"));
  const auditor = createDatabase({
    url: testDatabase.migrationUrl,
    applicationName: "test",
    commandConnections: 1,
    readConnections: 1,
    statementTimeoutMs: 20_000,
  });
  const rights = new URL(testDatabase.url).username;
  await auditor.commands`revoke insert on audit_events from ${auditor.commands(rights)}`;
  await expect(download(service("shop"), id)).rejects.toThrow("artifacts is not available");
  await auditor.commands`grant insert on audit_events to ${auditor.commands(rights)}`;
  await auditor.stop(performance.now() + 1000);
  expect(await auditOf(id)).toEqual([]);
  expect((await download(service("shop"), id)).ok).toBe(true);
});

test("twenty downloads at once have twenty audit ids", async () => {
  const { id } = await storeArtifact("shop", Buffer.from("many"));
  const answers = await Promise.all(Array.from({ length: 20 }, async () => download(service("shop"), id)));
  const ids = answers.map((answer) => (answer.ok ? answer.value.auditId : ""));
  expect(new Set(ids).size).toBe(20);
  expect((await auditOf(id)).map((row) => row.id).toSorted()).toEqual(ids.toSorted());
});

test("no log line holds a signature, a token of a URL or the service token", async () => {
  const text = JSON.stringify(log.lines);
  expect(log.lines.length).toBeGreaterThan(5);
  for (const secret of ["x-keble-signature", "token=t", SERVICE_TOKEN, "5a5a5a"]) expect(text).not.toContain(secret);
});

test("readiness asks the database and the store", async () => {
  const asked = await ask(artifacts.url, "/readyz");
  expect(asked.status).toBe(200);
  expect(JSON.parse(asked.body.toString())).toEqual({
    status: "ok",
    checks: [
      { name: "database", status: "ok" },
      { name: "artifact-store", status: "ok" },
    ],
  });
  // A look-up leaves nothing behind.
  expect(await readdir(join(directory, "store"))).toEqual(["artifacts"]);
});

test("a service that can't take its download port starts nothing and leaves nothing open", async () => {
  const store = { ...settings.artifacts.store, baseUrl: artifacts.downloadsUrl ?? "" };
  const second = createArtifacts(
    { ...settings, artifacts: { ...settings.artifacts, store } },
    { logger: captureLog().logger },
  );
  await expect(second.start()).rejects.toThrow("EADDRINUSE");
  await second.stop(0);
});

function putPin(
  principal: Principal,
  artifactId: string,
  pin: { retentionRevision: number; expiresAt: string | null },
) {
  return calls.client.putPin.mutate({ principal, artifactId, owner: "orders", pin, requestId: "request-7" });
}

test("A8 a pin is its caller's, compared by the millisecond, audited under the key, and listed", async () => {
  const { id } = await storeArtifact("shop", Buffer.from("pinned"));
  const principal = service("shop");
  const first = await putPin(principal, id, { retentionRevision: 1, expiresAt: "2999-01-01T02:00:00.1239+02:00" });
  expect(first).toMatchObject({ ok: true, value: { applied: true, pin: { expiresAt: "2999-01-01T00:00:00.123Z" } } });
  const same = await putPin(principal, id, { retentionRevision: 1, expiresAt: "2999-01-01T00:00:00.123Z" });
  expect(same).toMatchObject({ ok: true, value: { applied: false } });
  expect(await putPin(principal, id, { retentionRevision: 1, expiresAt: null })).toMatchObject({
    failure: { code: "CONFLICT" },
  });
  expect(await putPin(service("other"), id, { retentionRevision: 2, expiresAt: null })).toMatchObject({
    failure: { code: "NOT_FOUND" },
  });
  expect(await auditOf(id)).toMatchObject([
    { action: "artifact.pinned", actor: principal.keyId, caller_id: "shop", request_id: "request-7" },
  ]);
  const list = (as: Principal, query: { limit: number; cursor?: string } = { limit: 1 }) =>
    calls.client.listPins.query({ principal: as, artifactId: id, query });
  expect(await list(operator)).toMatchObject({
    ok: true,
    value: { items: [{ artifactId: id, owner: "orders", retentionRevision: 1 }], nextCursor: null },
  });
  expect(await list(service("other"))).toMatchObject({ failure: { code: "NOT_FOUND" } });
  expect(await list(principal, { limit: 1, cursor: "-" })).toMatchObject({ failure: { code: "INVALID_REQUEST" } });
});

test("A8 a deleted artifact takes no pin, and its pins can still be read", async () => {
  const { id } = await storeArtifact("shop", Buffer.from("pinned and gone"));
  await putPin(service("shop"), id, { retentionRevision: 1, expiresAt: "2020-01-01T00:00:00Z" });
  await markDeleted(id);
  expect(await putPin(service("shop"), id, { retentionRevision: 2, expiresAt: null })).toMatchObject({
    failure: { code: "GONE" },
  });
  expect(
    await calls.client.listPins.query({ principal: service("shop"), artifactId: id, query: { limit: 1 } }),
  ).toMatchObject({ ok: true, value: { items: [{ owner: "orders", expiresAt: "2020-01-01T00:00:00.000Z" }] } });
});
