import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import type { S3Fault, S3FaultMatcher } from "@keble-scraper/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type BinaryKey, createGeneration, formatBinaryKey, type SpooledBody, StoreUnavailable } from "../src/index.ts";
import { spoolBytes } from "./conformance.ts";
import { type OpenS3, openS3 } from "./open-s3.ts";

// Outages that begin in the middle of a call, and last. A put of up to 100,000 bytes is one request, a longer one has parts.
const KB = 1000;
let s3: OpenS3;

beforeEach(async () => {
  s3 = await openS3({
    partBytesMin: 100 * KB,
    tuning: { singlePutBytesMax: 100 * KB, partBytesMin: 100 * KB, requestTimeoutMs: 5000, idleTimeoutMs: 5000 },
  });
});
afterEach(async () => {
  await s3.close();
});

async function spooled(bytes: Buffer): Promise<{ readonly body: SpooledBody; readonly key: BinaryKey }> {
  const body = await spoolBytes(s3.spool, bytes);
  return { body, key: { sha256: body.sha256, generation: createGeneration() } };
}

async function stored(bytes: Buffer): Promise<BinaryKey> {
  const { body, key } = await spooled(bytes);
  await s3.store.put(body, key);
  return key;
}

/** Holds the requests that match, or does worse to them, and takes the service down when the first one is there. */
async function goDownIn(call: () => Promise<unknown>, matcher: S3FaultMatcher, fault: S3Fault): Promise<void> {
  const set = s3.server.fail({ times: Infinity, ...matcher }, fault);
  const ended = call().then(
    () => null,
    (error: unknown) => error,
  );
  await set.reached();
  // Everything is done before an answer is lost.
  if (fault.kind === "LOSE_ANSWER") await s3.server.waitFor(({ operation }) => operation === matcher.operation);
  await s3.server.stop();
  set.lift();
  expect(await ended).toBeInstanceOf(StoreUnavailable);
}

async function expectWhole(key: BinaryKey, bytes: Buffer): Promise<void> {
  const stream = await s3.store.read(key);
  expect((await buffer(stream!)).equals(bytes)).toBe(true);
  expect([...s3.server.objects().keys()]).toEqual([`kept/artifacts/${formatBinaryKey(key)}`]);
}

test.each([
  ["in one request, while it is sent", 90 * KB, "PutObject", { kind: "HANG" }, 0],
  ["in one request, whose answer is lost", 90 * KB, "PutObject", { kind: "LOSE_ANSWER" }, 1],
  ["in parts, at its beginning", 350 * KB, "CreateMultipartUpload", { kind: "HANG" }, 0],
  ["in parts, while a part is sent", 350 * KB, "UploadPart", { kind: "HANG" }, 0],
  ["in parts, while a part is taken in", 350 * KB, "UploadPart", { kind: "CUT_REQUEST", afterBytes: 50 * KB }, 0],
  ["in parts, at its end", 350 * KB, "CompleteMultipartUpload", { kind: "HANG" }, 0],
  ["in parts, when the answer of its end is lost", 350 * KB, "CompleteMultipartUpload", { kind: "LOSE_ANSWER" }, 1],
] as const)(
  "A1 a put %s, fails when the service goes down; sent again it is there, once, and no part is left",
  async (_, size, operation, fault, left) => {
    const bytes = randomBytes(size);
    const { body, key } = await spooled(bytes);
    await goDownIn(async () => s3.store.put(body, key), { operation }, fault);
    expect(s3.server.objects().size).toBe(left);
    const before = s3.server.requests().length;
    await s3.server.start();
    await s3.store.put(body, key);
    await expectWhole(key, bytes);
    // What had arrived whole is seen, or refused as there already; its bytes are not sent into a second upload.
    const again = s3.server.requests().slice(before);
    if (left === 1) expect(again.some((request) => request.operation === "UploadPart")).toBe(false);
    await s3.store.removeStrays(new Date(Date.now() + 60_000), new AbortController().signal);
    expect(s3.server.uploads()).toEqual([]);
    await expectWhole(key, bytes);
  },
);

test("a read that the service leaves fails, whatever had come, and reads on when it is back", async () => {
  const bytes = randomBytes(3000 * KB);
  const key = await stored(bytes);
  s3.server.fail({ operation: "GetObject" }, { kind: "STALL_ANSWER", afterBytes: 400 * KB });
  const stream = (await s3.store.read(key))!;
  await once(stream, "readable");
  await s3.server.stop();
  await expect(buffer(stream)).rejects.toBeInstanceOf(StoreUnavailable);
  await s3.server.start();
  const rest = await s3.store.read(key, { start: 400 * KB, end: bytes.length - 1 });
  expect((await buffer(rest!)).equals(bytes.subarray(400 * KB))).toBe(true);
  await expectWhole(key, bytes);
});

test.each([
  ["before it was done", { kind: "HANG" }, 1],
  ["after it was done", { kind: "LOSE_ANSWER" }, 0],
] as const)("A3 a delete whose answer never came, %s, is done by the next", async (_, fault, left) => {
  const key = await stored(randomBytes(10));
  await goDownIn(async () => s3.store.delete(key), { operation: "DeleteObject" }, fault);
  expect(s3.server.objects().size).toBe(left);
  await s3.server.start();
  await s3.store.delete(key);
  expect(s3.server.objects().size).toBe(0);
  expect(await s3.store.head(key)).toBeNull();
});

test("a listing goes on from its cursor after the service was away, without losing or doubling a key", async () => {
  const keys: BinaryKey[] = [];
  for (let i = 0; i < 5; i += 1) keys.push(await stored(randomBytes(10)));
  const first = await s3.store.list(null, 2);
  await goDownIn(async () => s3.store.list(first.nextCursor, 2), { operation: "ListObjectsV2" }, { kind: "HANG" });
  await s3.server.start();
  const seen = first.items.map(({ key }) => formatBinaryKey(key));
  for (let cursor = first.nextCursor; cursor !== null;) {
    const page = await s3.store.list(cursor, 2);
    seen.push(...page.items.map(({ key }) => formatBinaryKey(key)));
    cursor = page.nextCursor;
  }
  expect(seen).toEqual(keys.map(formatBinaryKey).toSorted());
});

test("A4 a claim whose answer was lost with the service is the claim that holds", async () => {
  await goDownIn(async () => s3.store.claimOwner("first"), { operation: "PutObject" }, { kind: "LOSE_ANSWER" });
  await s3.server.start();
  expect(await s3.store.claimOwner("second")).toBe("first");
});

test("a service that is slow, but within its time, is asked once for each thing", async () => {
  s3.server.fail({ times: Infinity }, { kind: "DELAY", until: 100 });
  const bytes = randomBytes(250 * KB);
  const key = await stored(bytes);
  await expectWhole(key, bytes);
  await s3.store.delete(key);
  const asked = s3.server.requests().map(({ operation }) => operation);
  expect(asked.filter((operation) => operation !== "HeadObject")).toEqual([
    "CreateMultipartUpload",
    "UploadPart",
    "UploadPart",
    "UploadPart",
    "CompleteMultipartUpload",
    "GetObject",
    "DeleteObject",
  ]);
});
