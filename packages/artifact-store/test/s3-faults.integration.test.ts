import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import { createGate, type S3Fault } from "@keble-scraper/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type BinaryKey, createGeneration, formatBinaryKey, type S3Store, StoreUnavailable } from "../src/index.ts";
import { spoolBytes } from "./conformance.ts";
import { type OpenS3, openS3 } from "./open-s3.ts";

const never = new AbortController().signal;
/** For answers that never come; whatever should come is left its ordinary time. */
const QUICK = { idleTimeoutMs: 300, requestTimeoutMs: 500 };
/** For connections that must be gone, whatever the machine is doing. */
const SOON = { timeout: 10_000 };
let s3: OpenS3;

beforeEach(async () => {
  s3 = await openS3();
});
afterEach(async () => {
  await s3.close();
});

async function stored(bytes: Buffer, store: S3Store = s3.store): Promise<BinaryKey> {
  const body = await spoolBytes(s3.spool, bytes);
  const key = { sha256: body.sha256, generation: createGeneration() };
  await store.put(body, key);
  await body.discard();
  return key;
}

async function faultOf(call: Promise<unknown>): Promise<StoreUnavailable> {
  const error: unknown = await call.then(
    () => null,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(StoreUnavailable);
  return error as StoreUnavailable;
}

const FAULTS: readonly (readonly [string, S3Fault, string, number | null])[] = [
  ["an internal error", { kind: "STATUS", status: 500, code: "InternalError" }, "InternalError", 3],
  ["a full disk", { kind: "STATUS", status: 507, code: "XMinioStorageFull" }, "XMinioStorageFull", 1],
  ["a right that is missing", { kind: "STATUS", status: 403, code: "AccessDenied" }, "AccessDenied", 1],
  ["a code that is no word", { kind: "STATUS", status: 400, code: "no word at all" }, "HTTP_400", 1],
  ["a cut connection", { kind: "CUT_BEFORE_HEAD" }, "ECONNRESET", 3],
  ["no answer at all", { kind: "HANG" }, "TIMEOUT", null],
];

test.each(FAULTS)(
  "%s is StoreUnavailable after its tries, for every call, and the same call works when sent again",
  async (_, fault, code, tries) => {
    const bytes = randomBytes(600_000);
    const body = await spoolBytes(s3.spool, bytes);
    const key = { sha256: body.sha256, generation: createGeneration() };
    const set = s3.server.fail({ operation: "PutObject", times: Infinity }, fault);
    const store = fault.kind === "HANG" ? await s3.another({}, QUICK) : s3.store;
    const error = await faultOf(store.put(body, key));
    expect(error.code).toBe(code);
    // A try that times out on a busy machine may not even have come.
    if (tries !== null) expect(set.hits).toBe(tries);
    const { settings } = s3;
    for (const secret of [settings.accessKeyId, settings.secretAccessKey, settings.bucket, "127.0.0.1", key.sha256]) {
      expect(error.message).not.toContain(secret);
    }
    expect(error.cause).toBeUndefined();
    set.lift();
    expect(s3.server.objects().size).toBe(0);
    await s3.store.put(body, key);
    expect(s3.server.objects().size).toBe(1);

    const all = s3.server.fail({ times: Infinity }, fault);
    const calls = {
      head: async () => store.head(key),
      read: async () => store.read(key),
      delete: async () => store.delete(key),
      list: async () => store.list(null),
      removeStrays: async () => store.removeStrays(new Date(), never),
      readOwner: async () => store.readOwner(),
      claimOwner: async () => store.claimOwner("x"),
    };
    const codes = await Promise.all(Object.values(calls).map(async (call) => (await faultOf(call())).code));
    // An answer to HEAD has no body, so it names no code.
    const headCode = fault.kind === "STATUS" ? `HTTP_${String(fault.status)}` : code;
    expect(codes).toEqual([headCode, code, code, code, code, code, code]);
    all.lift();
    expect(await s3.store.head(key)).toEqual({ sizeBytes: 600_000 });
  },
);

test("a service that is down refuses calls, keeps nobody from starting, and serves again when it is back", async () => {
  const key = await stored(randomBytes(10));
  await s3.server.stop();
  const late = await s3.another({});
  expect((await faultOf(late.head(key))).code).toBe("ECONNREFUSED");
  expect((await faultOf(s3.store.readOwner())).code).toBe("ECONNREFUSED");
  await s3.server.start();
  expect(await late.head(key)).toEqual({ sizeBytes: 10 });
  expect(await s3.store.head(key)).toEqual({ sizeBytes: 10 });
});

test.each([
  ["a wrong secret", { secretAccessKey: "wrong" }, "SignatureDoesNotMatch"],
  ["a key id that is unknown", { accessKeyId: "UNKNOWN" }, "InvalidAccessKeyId"],
  ["a bucket that is not there", { bucket: "another-bucket" }, "NoSuchBucket"],
])("%s is StoreUnavailable by its own code, never an object that is missing", async (_, changed, code) => {
  const store = await s3.another(changed);
  expect((await faultOf(stored(randomBytes(10), store))).code).toBe(code);
  const key = { sha256: "ab".repeat(32), generation: createGeneration() };
  expect((await faultOf(store.read(key))).code).toBe(code);
  expect((await faultOf(store.delete(key))).code).toBe(code);
  expect((await faultOf(store.list(null))).code).toBe(code);
  expect((await faultOf(store.readOwner())).code).toBe(code);
  expect((await faultOf(store.claimOwner("x"))).code).toBe(code);
  expect(s3.server.objects().size).toBe(0);
});

test.each([
  ["cut", { kind: "CUT_ANSWER", afterBytes: 300_000 }, "ECONNRESET"],
  ["silent", { kind: "STALL_ANSWER", afterBytes: 300_000 }, "TIMEOUT"],
] as const)(
  "a stream that is %s on the way fails with StoreUnavailable, it never ends early",
  async (_, fault, code) => {
    const key = await stored(randomBytes(2_000_000));
    s3.server.fail({ operation: "GetObject" }, fault);
    const store = fault.kind === "STALL_ANSWER" ? await s3.another({}, QUICK) : s3.store;
    const stream = await store.read(key);
    expect((await faultOf(buffer(stream!))).code).toBe(code);
    expect((await buffer((await s3.store.read(key))!)).byteLength).toBe(2_000_000);
  },
);

test.each([["list"], ["removeStrays"]] as const)(
  "a document of %s that is cut in the middle is StoreUnavailable, not a short answer",
  async (call) => {
    await stored(randomBytes(10));
    s3.server.fail({ operation: ["ListObjectsV2", "ListMultipartUploads"], times: Infinity }, { kind: "TRUNCATE_XML" });
    const error = await faultOf(call === "list" ? s3.store.list(null) : s3.store.removeStrays(new Date(), never));
    expect(error.code).toBe("BAD_ANSWER");
  },
);

test("names that are no keys are passed over, also a whole page of them, and the listing gets past", async () => {
  const keys = [await stored(randomBytes(10)), await stored(randomBytes(11)), await stored(randomBytes(12))];
  for (let index = 0; index < 7; index += 1) await s3.server.plant(`kept/artifacts/00-not-ours-${String(index)}`, "x");
  await s3.server.plant("kept/artifacts/zz", "x");
  await s3.server.plant("kept/artifacts-2/zz", "x");
  const seen: string[] = [];
  let cursor: string | null = null;
  let pages = 0;
  do {
    const page = await s3.store.list(cursor, 2);
    seen.push(...page.items.map(({ key }) => formatBinaryKey(key)));
    cursor = page.nextCursor;
    pages += 1;
  } while (cursor !== null && pages < 20);
  expect(seen).toEqual(keys.map(formatBinaryKey).toSorted());
});

// A refusal that comes before the body was read leaves the request half sent; its connection must not stay open for ever.
test("a big body that is refused at once is an error at once, and leaves no connection behind", async () => {
  const store = await s3.another({}, { singlePutBytesMax: 64 * 1024 * 1024 });
  const body = await spoolBytes(s3.spool, Buffer.alloc(12_000_000, 7));
  const key = { sha256: body.sha256, generation: createGeneration() };
  const set = s3.server.fail(
    { operation: "PutObject", times: Infinity },
    { kind: "STATUS", status: 403, code: "AccessDenied" },
  );
  for (let times = 0; times < 4; times += 1) expect((await faultOf(store.put(body, key))).code).toBe("AccessDenied");
  set.lift();
  await store.put(body, key);
  await expect.poll(() => s3.server.connections(), SOON).toBeLessThan(4);
});

test("stop ends what is on the way, closes every connection, and nothing is sent afterwards", async () => {
  const key = await stored(randomBytes(2_000_000));
  const slow = await s3.another({});
  const hang = s3.server.fail({ operation: "HeadObject" }, { kind: "HANG" });
  const waiting = faultOf(slow.head(key));
  await hang.reached();
  const stream = (await slow.read(key))!;
  const broken = once(stream, "error");
  await slow.stop(0);
  await slow.stop(0);
  expect((await waiting).code).toBe("ABORTED");
  expect((await broken)[0] as unknown).toBeInstanceOf(StoreUnavailable);
  expect((await faultOf(slow.head(key))).code).toBe("CLOSED");
  await s3.store.stop(0);
  await expect.poll(() => s3.server.connections(), SOON).toBe(0);
});

test("A4 the identity is the place and no more: the origin as a URL spells it, no key, no secret", async () => {
  const store = await s3.another({ endpoint: "HTTPS://S3.Example.COM:443/" });
  expect(store.identity()).toEqual({
    kind: "S3",
    prefix: "kept/artifacts",
    endpoint: "https://s3.example.com",
    bucket: s3.settings.bucket,
  });
});

test.each([["PRECONDITION"], ["CONFLICT"]] as const)(
  "A4 of two claimers at once the store keeps one, and tells both who: %s",
  async (racing) => {
    const raced = await openS3({ racing });
    try {
      for (let round = 0; round < 10; round += 1) {
        const prefix = `p${String(round)}`;
        const [left, right] = [await raced.another({ prefix }), await raced.another({ prefix })];
        const [first, second] = await Promise.all([left.claimOwner("left"), right.claimOwner("right")]);
        expect(first).toBe(second);
        expect((await raced.server.bytes(`${prefix}/owner`)).toString()).toBe(first);
      }
    } finally {
      await raced.close();
    }
  },
);

test("a write that meets another's is made again, a few times", async () => {
  const meets = { kind: "STATUS", status: 409, code: "ConditionalRequestConflict" } as const;
  const twice = s3.server.fail({ operation: "PutObject", times: 2 }, meets);
  const key = await stored(randomBytes(10));
  expect([twice.hits, await s3.store.head(key)]).toEqual([2, { sizeBytes: 10 }]);
  const again = s3.server.fail({ operation: "PutObject", times: 2 }, meets);
  expect(await s3.store.claimOwner("mine")).toBe("mine");
  expect(again.hits).toBe(2);
  const always = s3.server.fail({ operation: "PutObject", times: Infinity }, meets);
  expect((await faultOf(stored(randomBytes(10)))).code).toBe("ConditionalRequestConflict");
  expect(always.hits).toBe(5);
});

// Both claimers found no mark; without the condition the later put would replace the mark that the other was told is its own.
test.each([["S3"], ["OSS"]] as const)("A4 a claim whose put comes late replaces no mark: %s", async (dialect) => {
  const raced = await openS3({ dialect });
  try {
    const gate = createGate();
    const set = raced.server.fail({ operation: "PutObject" }, { kind: "DELAY", until: gate.opened });
    const late = raced.store.claimOwner("late");
    await set.reached();
    expect(await (await raced.another({})).claimOwner("first")).toBe("first");
    gate.open();
    expect(await late).toBe("first");
    expect(await raced.store.readOwner()).toBe("first");
  } finally {
    await raced.close();
  }
});

test("an owner's mark that is larger than ours ever is, is read no further", async () => {
  await s3.server.plant("kept/artifacts/owner", Buffer.alloc(30_000_000, "x"));
  expect((await s3.store.readOwner())?.length).toBe(4096);
  await expect.poll(() => s3.server.connections(), SOON).toBe(0);
});
