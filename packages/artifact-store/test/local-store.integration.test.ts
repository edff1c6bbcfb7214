import { randomBytes } from "node:crypto";
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { createGeneration, createLocalStore, createSpool, StoreUnavailable } from "../src/index.ts";
import { LOCAL_DISK, type LocalEdge } from "../src/local-edge.ts";
import { describeBinaryStore, spoolBytes } from "./conformance.ts";

const never = new AbortController().signal;
const made: string[] = [];
afterEach(async () => {
  for (const directory of made.splice(0)) await rm(directory, { recursive: true });
});

async function openLocal(edge: LocalEdge = LOCAL_DISK, directory?: string) {
  const base = directory ?? (await mkdtemp(join(tmpdir(), "keble-store-")));
  if (directory === undefined) made.push(base);
  const spool = createSpool({ directory: join(base, "spool") });
  const store = createLocalStore({ directory: join(base, "store"), prefix: "artifacts/test", edge });
  await spool.start(never);
  await store.start(never);
  return { base, root: join(base, "store", "artifacts", "test"), spool, store };
}

describeBinaryStore("local directory", async () => {
  const base = await mkdtemp(join(tmpdir(), "keble-store-"));
  const { spool, store } = await openLocal(LOCAL_DISK, base);
  return { store, spool, close: async () => rm(base, { recursive: true }) };
});

/** An edge that notes each call by what it touched, and can be made to fail. */
function watchedEdge(failing: Partial<Record<keyof LocalEdge | "write" | "sync" | "close", string>> = {}) {
  const calls: string[] = [];
  const what = (path: string): string =>
    /temp-/.test(path)
      ? "temp"
      : /\.[0-9a-f]{16}$/.test(path)
        ? "object"
        : /\/[0-9a-f]{2}$/.test(path)
          ? "shard"
          : "root";
  function note(call: keyof LocalEdge | "write" | "sync" | "close", on: string): void {
    calls.push(`${call} ${on}`);
    const code = failing[call];
    if (code !== undefined) throw Object.assign(new Error(code), { code, syscall: call });
  }
  const edge: LocalEdge = {
    async makeDirectory(path) {
      note("makeDirectory", what(path));
      await LOCAL_DISK.makeDirectory(path);
    },
    async create(path) {
      note("create", what(path));
      const file = await LOCAL_DISK.create(path);
      return {
        async write(bytes) {
          await file.write(bytes.subarray(0, failing.write === undefined ? bytes.length : bytes.length >> 1));
          note("write", what(path));
        },
        async sync() {
          note("sync", what(path));
          await file.sync();
        },
        async close() {
          await file.close();
          note("close", what(path));
        },
      };
    },
    async link(from, to) {
      note("link", `${what(from)} ${what(to)}`);
      await LOCAL_DISK.link(from, to);
    },
    async unlink(path) {
      calls.push(`unlink ${what(path)}`);
      await LOCAL_DISK.unlink(path);
    },
    async syncDirectory(path) {
      note("syncDirectory", what(path));
      await LOCAL_DISK.syncDirectory(path);
    },
  };
  return { calls, edge, failing };
}

// A crash of the machine keeps only what was synced, in this order: an entry whose file was not synced first may show an
// empty file; a file without a synced entry is gone. Killing a process shows neither, so the order itself is the test.
test.each([
  ["small", 10_000, ["write temp"]],
  ["large", 600_000, ["write temp", "write temp", "write temp"]],
])("A1 a %s body is synced before it gets its name, and its name before the put resolves", async (_, size, writes) => {
  const { calls, edge } = watchedEdge();
  const { spool, store } = await openLocal(edge);
  const body = await spoolBytes(spool, randomBytes(size));
  const key = { sha256: body.sha256, generation: createGeneration() };
  calls.length = 0;
  await store.put(body, key);
  expect(calls).toEqual([
    "makeDirectory shard",
    "syncDirectory root",
    "create temp",
    ...writes,
    "sync temp",
    "close temp",
    "link temp object",
    "unlink temp",
    "syncDirectory shard",
  ]);
  calls.length = 0;
  await store.delete(key);
  expect(calls).toEqual(["unlink object", "syncDirectory shard"]);
});

test("A1 the folders of a new store are synced up to the one that held none", async () => {
  const { calls, edge } = watchedEdge();
  await openLocal(edge);
  expect(calls).toEqual(["makeDirectory root", "syncDirectory root", "syncDirectory root", "syncDirectory root"]);
});

test("a put never writes over a file, and mends one whose size is wrong", async () => {
  const { calls, edge } = watchedEdge();
  const { root, spool, store } = await openLocal(edge);
  const bytes = randomBytes(5000);
  const body = await spoolBytes(spool, bytes);
  const key = { sha256: body.sha256, generation: createGeneration() };
  await store.put(body, key);
  const path = join(root, key.sha256.slice(0, 2), `${key.sha256}.${key.generation}`);
  const before = await stat(path);

  calls.length = 0;
  await store.put(body, key);
  expect((await stat(path)).ino).toBe(before.ino);
  expect(calls).not.toContain("unlink object");
  expect(calls.at(-1)).toBe("syncDirectory shard");

  await truncate(path, 100);
  await store.put(body, key);
  expect((await readFile(path)).equals(bytes)).toBe(true);
});

test.each([
  ["create", "ENOSPC"],
  ["create", "EMFILE"],
  ["write", "ENOSPC"],
  ["sync", "EIO"],
  ["close", "EIO"],
  ["link", "EIO"],
] as const)(
  "a %s that fails with %s is StoreUnavailable, leaves no file, and the put works when sent again",
  async (call, code) => {
    for (const size of [10_000, 600_000]) {
      const { edge, failing } = watchedEdge();
      const { root, spool, store } = await openLocal(edge);
      const body = await spoolBytes(spool, randomBytes(size));
      const key = { sha256: body.sha256, generation: createGeneration() };
      failing[call] = code;
      const error: unknown = await store.put(body, key).catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(StoreUnavailable);
      expect((error as StoreUnavailable).code).toBe(code);
      expect((error as StoreUnavailable).message).not.toContain("/");
      expect(await readdir(join(root, key.sha256.slice(0, 2)))).toEqual([]);
      expect(await store.head(key)).toBeNull();
      delete failing[call];
      await store.put(body, key);
      expect(await store.head(key)).toEqual({ sizeBytes: size });
    }
  },
);

test("A1 a put whose name could not be synced fails, and syncs again when sent again", async () => {
  const { calls, edge, failing } = watchedEdge();
  const { spool, store } = await openLocal(edge);
  const body = await spoolBytes(spool, randomBytes(10));
  const key = { sha256: body.sha256, generation: createGeneration() };
  await store.put(body, { ...key, generation: createGeneration() });
  failing.syncDirectory = "EIO";
  await expect(store.put(body, key)).rejects.toThrow(StoreUnavailable);
  delete failing.syncDirectory;
  calls.length = 0;
  await store.put(body, key);
  expect(calls).toContain("syncDirectory shard");
});

test("A1 a spool file that was damaged does not get a good name", async () => {
  const { root, base, spool, store } = await openLocal();
  const body = await spoolBytes(spool, randomBytes(600_000));
  const [file = ""] = await readdir(join(base, "spool"));
  await truncate(join(base, "spool", file), 599_999);
  const key = { sha256: body.sha256, generation: createGeneration() };
  await expect(store.put(body, key)).rejects.toThrow("SPOOL_DAMAGED");
  expect(await store.head(key)).toBeNull();
  expect(await readdir(join(root, key.sha256.slice(0, 2)))).toEqual([]);
});

test("at most four large bodies are written at once", async () => {
  let open = 0;
  let most = 0;
  const edge: LocalEdge = {
    ...LOCAL_DISK,
    async create(path) {
      const file = await LOCAL_DISK.create(path);
      open += 1;
      most = Math.max(most, open);
      return {
        ...file,
        async close() {
          open -= 1;
          await file.close();
        },
      };
    },
  };
  const { spool, store } = await openLocal(edge);
  const bodies = await Promise.all(Array.from({ length: 12 }, async () => spoolBytes(spool, randomBytes(1_048_577))));
  await Promise.all(
    bodies.map(async (body) => store.put(body, { sha256: body.sha256, generation: createGeneration() })),
  );
  expect(most).toBe(4);
});

test("A5 only files the store wrote are served: no link out of the directory, no folder, no stray file", async () => {
  const { base, root, store } = await openLocal();
  const sha256 = "ab".repeat(32);
  const shard = join(root, "ab");
  await writeFile(join(base, "secret"), "secret");
  await mkdir(join(shard, `${sha256}.00000000000000aa`), { recursive: true });
  await symlink(join(base, "secret"), join(shard, `${sha256}.00000000000000bb`));
  await writeFile(join(shard, "notes.txt"), "x");
  expect(await store.head({ sha256, generation: "00000000000000bb" })).toBeNull();
  expect(await store.read({ sha256, generation: "00000000000000bb" })).toBeNull();
  expect(await store.head({ sha256, generation: "00000000000000aa" })).toBeNull();
  expect(await store.list(null)).toEqual({ items: [], nextCursor: null });
});

test("files are their owner's alone, and so are the folders", async () => {
  const { root, spool, store } = await openLocal();
  const body = await spoolBytes(spool, randomBytes(10));
  const key = { sha256: body.sha256, generation: createGeneration() };
  await store.put(body, key);
  const shard = join(root, key.sha256.slice(0, 2));
  expect((await lstat(shard)).mode & 0o777).toBe(0o700);
  expect((await lstat(join(shard, `${key.sha256}.${key.generation}`))).mode & 0o777).toBe(0o600);
});

test("A4 the identity names the directory through links, the same from either path", async () => {
  const { base, store } = await openLocal();
  await symlink(join(base, "store"), join(base, "link"));
  const other = createLocalStore({ directory: join(base, "link"), prefix: "artifacts/test" });
  expect(() => other.identity()).toThrow("not started");
  await other.start(never);
  expect(other.identity()).toEqual(store.identity());
  expect(store.identity()).toEqual({ kind: "LOCAL", prefix: "artifacts/test", directory: join(base, "store") });
});

test("a shard folder that was removed by hand is made again at the second put", async () => {
  const { root, spool, store } = await openLocal();
  const body = await spoolBytes(spool, randomBytes(10));
  const key = { sha256: body.sha256, generation: createGeneration() };
  await store.put(body, key);
  await rm(join(root, key.sha256.slice(0, 2)), { recursive: true });
  await expect(store.put(body, key)).rejects.toThrow(StoreUnavailable);
  await store.put(body, key);
  expect(await store.head(key)).toEqual({ sizeBytes: 10 });
});

test("fsync OFF stores the same bytes without a sync", async () => {
  const { calls, edge } = watchedEdge();
  const { base, spool } = await openLocal();
  const store = createLocalStore({ directory: join(base, "other"), prefix: "p", fsync: "OFF", edge });
  await store.start(never);
  const body = await spoolBytes(spool, randomBytes(10));
  await store.put(body, { sha256: body.sha256, generation: createGeneration() });
  expect(calls.filter((call) => call.startsWith("sync"))).toEqual([]);
});
