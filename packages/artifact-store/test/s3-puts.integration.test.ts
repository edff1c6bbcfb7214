import { createHash, randomBytes } from "node:crypto";
import { readdir, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createGate, type S3Exchange } from "@keble-scraper/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type BinaryKey, createGeneration, formatBinaryKey, type SpooledBody, StoreUnavailable } from "../src/index.ts";
import { spoolBytes } from "./conformance.ts";
import { type OpenS3, openS3 } from "./open-s3.ts";

const MIB = 1024 * 1024;
const TUNING = { singlePutBytesMax: 2 * MIB, partBytesMin: MIB };
const SIZES = [
  ["in memory", 1000],
  ["of one request", MIB],
  ["in parts", 5 * MIB + 1],
] as const;
const never = new AbortController().signal;
let s3: OpenS3;

beforeEach(async () => {
  s3 = await openS3({ partBytesMin: MIB, tuning: TUNING });
});
afterEach(async () => {
  await s3.close();
});

async function spooled(
  size: number,
): Promise<{ readonly body: SpooledBody; readonly key: BinaryKey; readonly name: string }> {
  const body = await spoolBytes(s3.spool, randomBytes(size));
  const key = { sha256: body.sha256, generation: createGeneration() };
  return { body, key, name: `${s3.settings.prefix}/${formatBinaryKey(key)}` };
}

/** The requests for one object that came since the call. */
function watchRequests(name: string): () => readonly S3Exchange[] {
  const before = s3.server.requests().length;
  return () =>
    s3.server
      .requests()
      .slice(before)
      .filter((exchange) => exchange.key === name);
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  const error: unknown = await call.then(
    () => null,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(StoreUnavailable);
  return (error as StoreUnavailable).code;
}

test.each(SIZES)(
  "a body %s goes with its length and its hash, never aws-chunked, and says its hash as private metadata",
  async (_, size) => {
    const { body, key, name } = await spooled(size);
    const sent = watchRequests(name);
    await s3.store.put(body, key);
    const object = s3.server.objects().get(name);
    expect(object).toMatchObject({ sizeBytes: size, sha256: key.sha256, metadata: { sha256: key.sha256 } });
    expect(object?.contentType).toBe("application/octet-stream");
    const puts = sent().filter(({ method }) => method === "PUT");
    expect(puts.length).toBe(size > TUNING.singlePutBytesMax ? 6 : 1);
    for (const { headers } of puts) {
      expect(headers["x-amz-content-sha256"]).toMatch(/^[0-9a-f]{64}$/);
      expect(Number(headers["content-length"])).toBeGreaterThan(0);
      expect(headers["transfer-encoding"] ?? headers["content-encoding"] ?? headers["x-amz-trailer"]).toBeUndefined();
      expect(Object.keys(headers).filter((header) => /checksum/.test(header))).toEqual([]);
    }
  },
);

test.each(SIZES)("a put of a body %s that is sent again sends no bytes that replace anything", async (_, size) => {
  const { body, key, name } = await spooled(size);
  await s3.store.put(body, key);
  const first = s3.server.objects().get(name)!.storedAt;
  const sent = watchRequests(name);
  await s3.store.put(body, key);
  expect(s3.server.objects().get(name)!.storedAt).toEqual(first);
  const codes = sent().map(({ operation, code }) => `${operation} ${String(code)}`);
  expect(codes).toEqual(
    size > TUNING.singlePutBytesMax ? ["HeadObject null"] : ["PutObject PreconditionFailed", "HeadObject null"],
  );
});

test.each(SIZES)("an object of another size than a body %s is replaced", async (_, size) => {
  const { body, key, name } = await spooled(size);
  await s3.server.plant(name, "damaged");
  await s3.store.put(body, key);
  expect(s3.server.objects().get(name)).toMatchObject({ sizeBytes: size, sha256: key.sha256 });
});

// What a retry of the SDK may not do with a stream, ours do: each try reads the body anew.
test.each(SIZES)("a put of a body %s outlives one broken try of every kind", async (_, size) => {
  const operation = size > TUNING.singlePutBytesMax ? "UploadPart" : "PutObject";
  for (const fault of [
    { kind: "STATUS", status: 500, code: "InternalError" },
    { kind: "CUT_BEFORE_HEAD" },
    { kind: "CUT_REQUEST", afterBytes: 900 },
    { kind: "LOSE_ANSWER" },
  ] as const) {
    const { body, key, name } = await spooled(size);
    const set = s3.server.fail({ operation }, fault);
    await s3.store.put(body, key);
    expect(set.hits).toBe(1);
    expect(s3.server.objects().get(name)).toMatchObject({ sizeBytes: size, sha256: key.sha256 });
    expect(s3.server.uploads()).toEqual([]);
  }
});

test.each([
  ["LOSE_ANSWER", { kind: "LOSE_ANSWER" }],
  ["an error inside a 200", { kind: "ERROR_IN_OK", code: "InternalError" }],
] as const)("an upload whose end met %s is there once", async (_, fault) => {
  const { body, key, name } = await spooled(3 * MIB);
  const set = s3.server.fail({ operation: "CompleteMultipartUpload" }, fault);
  await s3.store.put(body, key);
  expect(set.hits).toBe(1);
  expect(s3.server.objects().get(name)).toMatchObject({ sizeBytes: 3 * MIB, sha256: key.sha256 });
  expect(s3.server.uploads()).toEqual([]);
});

test("an upload that another writer of the same generation outran is dropped", async () => {
  const { body, key, name } = await spooled(3 * MIB);
  const gate = createGate();
  const sent = watchRequests(name);
  const set = s3.server.fail({ operation: "CompleteMultipartUpload" }, { kind: "DELAY", until: gate.opened });
  const put = s3.store.put(body, key);
  await set.reached();
  await s3.store.put(body, key);
  const first = s3.server.objects().get(name)!.storedAt;
  gate.open();
  await put;
  const ends = sent().filter(({ operation }) => operation === "CompleteMultipartUpload");
  expect(ends.map(({ code }) => code)).toEqual(["PreconditionFailed", null]);
  expect(s3.server.objects().get(name)!.storedAt).toEqual(first);
  expect(s3.server.uploads()).toEqual([]);
});

// A failing abort used to replace the error that mattered: an operator would read "no such upload" for a full disk.
test("A1 an upload that fails leaves no object and no part, and its own error, whatever the abort says", async () => {
  const { body, key, name } = await spooled(5 * MIB);
  const full = s3.server.fail(
    { operation: "UploadPart", times: Infinity },
    { kind: "STATUS", status: 507, code: "XMinioStorageFull" },
  );
  expect(await codeOf(s3.store.put(body, key))).toBe("XMinioStorageFull");
  expect(s3.server.uploads()).toEqual([]);
  const denied = s3.server.fail(
    { operation: "AbortMultipartUpload", times: Infinity },
    { kind: "STATUS", status: 403, code: "AccessDenied" },
  );
  expect(await codeOf(s3.store.put(body, key))).toBe("XMinioStorageFull");
  expect(s3.server.objects().has(name)).toBe(false);
  expect(s3.server.uploads().length).toBe(1);
  full.lift();
  denied.lift();
  await s3.store.put(body, key);
  expect(s3.server.objects().get(name)).toMatchObject({ sha256: key.sha256 });
  await s3.store.removeStrays(new Date(Date.now() + 1000), never);
});

test("A3 strays are uploads of our own keys that were begun before the given time, and nothing else", async () => {
  const other = await s3.another({ prefix: `${s3.settings.prefix}/below` });
  const beside = await s3.another({ prefix: `${s3.settings.prefix}-2` });
  const denied = s3.server.fail(
    { operation: ["UploadPart", "AbortMultipartUpload"], times: Infinity },
    { kind: "STATUS", status: 403, code: "AccessDenied" },
  );
  const made: string[] = [];
  for (const store of [s3.store, s3.store, other, beside]) {
    const { body, key } = await spooled(3 * MIB);
    expect(await codeOf(store.put(body, key))).toBe("AccessDenied");
    made.push(key.sha256);
  }
  denied.lift();
  const hourAgo = new Date(Date.now() - 3_600_000);
  for (const { uploadId, key } of s3.server.uploads()) {
    if (!key.includes(made[1]!)) s3.server.setInitiatedAt(uploadId, new Date(hourAgo.getTime() - 1000));
  }
  const aborted = new AbortController();
  aborted.abort();
  expect(await s3.store.removeStrays(hourAgo, aborted.signal)).toBe(0);
  expect(await s3.store.removeStrays(hourAgo, never)).toBe(1);
  const left = s3.server.uploads().map(({ key }) => made.findIndex((sha256) => key.includes(sha256)));
  expect(new Set(left)).toEqual(new Set([1, 2, 3]));
  expect(await s3.store.removeStrays(hourAgo, never)).toBe(0);
  for (const store of [s3.store, other, beside]) await store.removeStrays(new Date(Date.now() + 1000), never);
  expect(s3.server.uploads()).toEqual([]);
});

// The service never gets the last bytes of a body that is not what was hashed, so it stores nothing even if it checks nothing.
test.each([
  ["one request, a byte less", MIB, "short"],
  ["one request, a byte that differs", MIB, "flip"],
  ["parts, a byte less", 5 * MIB, "short"],
  ["parts, a byte that differs", 5 * MIB, "flip"],
])("A1 a spool file that was damaged is not stored: %s", async (_, size, how) => {
  for (const name of await readdir(join(s3.directory, "spool"))) await truncate(join(s3.directory, "spool", name), 0);
  const bytes = randomBytes(size);
  const body = await spoolBytes(s3.spool, bytes);
  const files = await readdir(join(s3.directory, "spool"), { withFileTypes: true });
  const key = { sha256: body.sha256, generation: createGeneration() };
  for (const file of files) {
    const path = join(s3.directory, "spool", file.name);
    const changed = Buffer.from(bytes);
    changed[size - 1]! ^= 1;
    if (how === "short") await writeFile(path, bytes.subarray(0, size - 1));
    else await writeFile(path, changed);
  }
  expect(await codeOf(s3.store.put(body, key))).toBe("SPOOL_DAMAGED");
  expect([...s3.server.objects().keys()].some((name) => name.includes(key.sha256))).toBe(false);
  expect(s3.server.uploads()).toEqual([]);
});

test("bytes that were added to a spool file are not sent", async () => {
  const { body, key, name } = await spooled(MIB);
  for (const file of await readdir(join(s3.directory, "spool"))) {
    await writeFile(join(s3.directory, "spool", file), "more", { flag: "a" });
  }
  await s3.store.put(body, key);
  expect(s3.server.objects().get(name)).toMatchObject({ sizeBytes: MIB, sha256: key.sha256 });
});

test("a long body is never begun with parts too many for the service", async () => {
  const tiny = await s3.another({}, { singlePutBytesMax: 10, partBytesMin: 1 });
  const bytes = randomBytes(20_001);
  const body = await spoolBytes(s3.spool, bytes);
  const key = { sha256: createHash("sha256").update(bytes).digest("hex"), generation: createGeneration() };
  const name = `${s3.settings.prefix}/${formatBinaryKey(key)}`;
  const sent = watchRequests(name);
  const small = s3.server.fail(
    { operation: "UploadPart", times: Infinity },
    { kind: "STATUS", status: 400, code: "EntityTooSmall" },
  );
  expect(await codeOf(tiny.put(body, key))).toBe("EntityTooSmall");
  small.lift();
  expect(Number(sent().find(({ operation }) => operation === "UploadPart")!.headers["content-length"])).toBe(3);
});
