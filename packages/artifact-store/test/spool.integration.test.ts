import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import { createSpool, HEAD_BYTES, SPOOL_MEMORY_BYTES, StoreUnavailable } from "../src/index.ts";
import { SPOOL_DISK, type SpoolEdge } from "../src/spool-edge.ts";

const never = new AbortController().signal;
const made: string[] = [];
afterEach(async () => {
  for (const directory of made.splice(0)) await rm(directory, { recursive: true });
});

async function openSpool(options: { memoryBytesMax?: number; edge?: SpoolEdge } = {}) {
  const base = await mkdtemp(join(tmpdir(), "keble-spool-"));
  made.push(base);
  const directory = join(base, "spool");
  const spool = createSpool({ directory, ...options });
  await spool.start(never);
  return { directory, spool, files: async () => readdir(directory) };
}

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

test.each([0, 1, HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 1, 16_384, 16_385, SPOOL_MEMORY_BYTES])(
  "A1 a body of %i bytes is hashed and kept in memory, without a file",
  async (size) => {
    const { files, spool } = await openSpool();
    const bytes = randomBytes(size);
    const body = spool.open();
    for (let at = 0; at < size; at += 1000) expect(body.write(bytes.subarray(at, at + 1000))).toBeUndefined();
    const spooled = await body.finish();
    expect(spooled).toMatchObject({ sha256: sha256(bytes), sizeBytes: size });
    expect(Buffer.from(spooled.head).equals(bytes.subarray(0, HEAD_BYTES))).toBe(true);
    expect(Buffer.from(spooled.bytes()!).equals(bytes)).toBe(true);
    expect((await buffer(spooled.openStream())).equals(bytes)).toBe(true);
    expect(await files()).toEqual([]);
    await spooled.discard();
    expect(() => spooled.openStream()).toThrow("discarded");
  },
);

test.each([
  ["in small chunks", 700, SPOOL_MEMORY_BYTES + 1],
  ["in chunks of the memory's size", SPOOL_MEMORY_BYTES, SPOOL_MEMORY_BYTES * 3],
  ["in one chunk", 5_000_000, 5_000_000],
  ["in odd chunks", 99_991, 3_000_001],
])("A1 a larger body %s goes to one private file, byte for byte", async (_, chunkBytes, size) => {
  const { directory, files, spool } = await openSpool();
  const bytes = randomBytes(size);
  const body = spool.open();
  for (let at = 0; at < size; at += chunkBytes) await body.write(bytes.subarray(at, at + chunkBytes));
  const spooled = await body.finish();
  expect(spooled).toMatchObject({ sha256: sha256(bytes), sizeBytes: size });
  expect(spooled.bytes()).toBeNull();
  expect(Buffer.from(spooled.head).equals(bytes.subarray(0, HEAD_BYTES))).toBe(true);
  expect((await buffer(spooled.openStream())).equals(bytes)).toBe(true);
  expect((await buffer(spooled.openStream())).equals(bytes)).toBe(true);
  const [file = "", ...others] = await files();
  expect(others).toEqual([]);
  expect((await stat(join(directory, file))).mode & 0o777).toBe(0o600);
  expect((await stat(directory)).mode & 0o777).toBe(0o700);
  expect(spool.files).toBe(1);
  await spooled.discard();
  await spooled.discard();
  expect(await files()).toEqual([]);
  expect(spool.files).toBe(0);
});

test("bytes keep their order when a writer does not wait", async () => {
  const { spool } = await openSpool({ memoryBytesMax: 4096 });
  const chunks = Array.from({ length: 50 }, () => randomBytes(1500));
  const body = spool.open();
  await Promise.all(chunks.map(async (chunk) => body.write(chunk)));
  const spooled = await body.finish();
  const whole = Buffer.concat(chunks);
  expect(spooled.sha256).toBe(sha256(whole));
  expect((await buffer(spooled.openStream())).equals(whole)).toBe(true);
  await spooled.discard();
});

// Between the end of a disk write and the turn of the next queued chunk the memory has room again.
test("bytes keep their order when a chunk comes at any step of a disk write that ends", async () => {
  const chunks = [4096, 100, 100, 100].map((size) => randomBytes(size));
  const turn = async (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  for (let steps = 0; steps < 24; steps += 1) {
    const written: Uint8Array[] = [];
    let endWrite = (): void => undefined;
    async function write(bytes: Uint8Array): Promise<void> {
      written.push(Uint8Array.from(bytes));
      await new Promise<void>((resolve) => {
        endWrite = resolve;
      });
    }
    const none = async (): Promise<void> => Promise.resolve();
    const edge: SpoolEdge = { unlink: none, create: async () => Promise.resolve({ write, close: none }) };
    const { spool } = await openSpool({ memoryBytesMax: 4096, edge });
    const body = spool.open();
    const waits = chunks.slice(0, 3).map(async (chunk) => body.write(chunk));
    await turn();
    endWrite();
    for (let step = 0; step < steps; step += 1) await Promise.resolve();
    waits.push(Promise.resolve(body.write(chunks[3]!)));
    await Promise.all(waits);
    const finished = body.finish();
    await turn();
    endWrite();
    await finished;
    expect(Buffer.concat(written).equals(Buffer.concat(chunks))).toBe(true);
  }
});

test("a write that passes the memory limit asks the writer to wait", async () => {
  const { spool } = await openSpool({ memoryBytesMax: 4096 });
  const body = spool.open();
  expect(body.write(randomBytes(4096))).toBeUndefined();
  const wait = body.write(randomBytes(1));
  expect(wait).toBeInstanceOf(Promise);
  await wait;
  await body.discard();
});

// A pooled chunk of a few bytes may hold a whole slab; keeping references would let a slow origin fill the memory.
test("a body does not keep the chunks it was given", async () => {
  const { spool } = await openSpool();
  const chunk = Buffer.from("first");
  const body = spool.open();
  void body.write(chunk);
  chunk.fill(0);
  expect(Buffer.from((await body.finish()).bytes()!).toString()).toBe("first");
});

test("a body that is dropped half way leaves nothing, and takes nothing more", async () => {
  const { files, spool } = await openSpool({ memoryBytesMax: 4096 });
  const body = spool.open();
  await body.write(randomBytes(10_000));
  const late = body.write(randomBytes(10_000));
  await Promise.allSettled([late, body.discard()]);
  await body.discard();
  expect(await files()).toEqual([]);
  expect(spool.files).toBe(0);
  expect(() => body.write(randomBytes(1))).toThrow("discarded");
  await expect(body.finish()).rejects.toThrow("discarded");
});

test("a discard after the end does not take the body from its new owner", async () => {
  const { files, spool } = await openSpool({ memoryBytesMax: 4096 });
  const body = spool.open();
  await body.write(randomBytes(10_000));
  const spooled = await body.finish();
  await body.discard();
  expect((await files()).length).toBe(1);
  await spooled.discard();
});

test.each([
  ["create", "EMFILE"],
  ["write", "ENOSPC"],
  ["write", "EIO"],
  ["close", "EIO"],
] as const)("a %s that fails with %s is StoreUnavailable, spends the body and leaves no file", async (call, code) => {
  function fail(): never {
    throw Object.assign(new Error(`${code}: /some/path`), { code, syscall: call });
  }
  let open = 0;
  const edge: SpoolEdge = {
    ...SPOOL_DISK,
    async create(path) {
      if (call === "create") fail();
      const file = await SPOOL_DISK.create(path);
      open += 1;
      return {
        async write(bytes) {
          if (call === "write") fail();
          await file.write(bytes);
        },
        async close() {
          if (open > 0) await file.close();
          open = 0;
          if (call === "close") fail();
        },
      };
    },
  };
  const { files, spool } = await openSpool({ memoryBytesMax: 4096, edge });
  const body = spool.open();
  const outcome = (async () => {
    await body.write(randomBytes(10_000));
    await body.finish();
  })();
  const error: unknown = await outcome.catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(StoreUnavailable);
  expect(error).toMatchObject({ code, message: `The artifact store is unavailable (${code}).` });
  expect(open).toBe(0);
  expect(await files()).toEqual([]);
  expect(spool.files).toBe(0);
  expect(() => body.write(randomBytes(1))).toThrow(StoreUnavailable);
  await expect(body.finish()).rejects.toThrow(StoreUnavailable);
  await body.discard();
});

test("stop removes the files of this process that nobody discarded", async () => {
  const { files, spool } = await openSpool({ memoryBytesMax: 4096 });
  const body = spool.open();
  await body.write(randomBytes(10_000));
  await body.finish();
  await spool.stop(0);
  await spool.stop(0);
  expect(await files()).toEqual([]);
});

test("the sweep keeps what is no spool file, and a file of an unknown machine until it is old", async () => {
  const { directory, files, spool } = await openSpool();
  const foreign = `body-${"0".repeat(12)}-1-77-${"0".repeat(16)}`;
  await writeFile(join(directory, foreign), "x");
  await writeFile(join(directory, "notes.txt"), "x");
  await writeFile(join(directory, "body-"), "x");
  await spool.start(never);
  expect((await files()).toSorted()).toEqual(["body-", foreign, "notes.txt"]);
  const old = (Date.now() - 7 * 3_600_000) / 1000;
  for (const name of await files()) await utimes(join(directory, name), old, old);
  await spool.start(never);
  expect((await files()).toSorted()).toEqual(["body-", "notes.txt"]);
});
