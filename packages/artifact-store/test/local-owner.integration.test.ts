import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLocalStore, StoreUnavailable } from "../src/index.ts";
import { LOCAL_DISK, type LocalEdge } from "../src/local-edge.ts";
import { createMark } from "../src/process-mark.ts";

const never = new AbortController().signal;
let base = "";
const children: ChildProcess[] = [];

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "keble-owner-"));
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  }
  await rm(base, { recursive: true });
});

type Call = "create" | "write" | "sync" | "close" | "link" | "unlink" | "syncDirectory";

async function watched(failing: { call: Call | null } = { call: null }) {
  const calls: string[] = [];
  function note(call: Call, path: string): void {
    calls.push(`${call} ${path.includes("temp-") ? "temp" : path.endsWith("/owner") ? "owner" : "root"}`);
    if (failing.call === call) throw Object.assign(new Error("EIO"), { code: "EIO", syscall: call });
  }
  const edge: LocalEdge = {
    ...LOCAL_DISK,
    async create(path) {
      note("create", path);
      const file = await LOCAL_DISK.create(path);
      return {
        async write(bytes) {
          note("write", path);
          await file.write(bytes);
        },
        async sync() {
          note("sync", path);
          await file.sync();
        },
        async close() {
          await file.close();
          note("close", path);
        },
      };
    },
    async link(from, to) {
      note("link", to);
      await LOCAL_DISK.link(from, to);
    },
    async unlink(path) {
      calls.push(`unlink ${path.includes("temp-") ? "temp" : "owner"}`);
      await LOCAL_DISK.unlink(path);
    },
    async syncDirectory(path) {
      note("syncDirectory", path);
      await LOCAL_DISK.syncDirectory(path);
    },
  };
  const store = createLocalStore({ directory: join(base, "store"), prefix: "p", edge });
  const wanted = failing.call;
  failing.call = null;
  await store.start(never);
  failing.call = wanted;
  calls.length = 0;
  return { calls, failing, store, root: join(base, "store", "p") };
}

// A mark that a power cut takes away would let a second owner in: the rows of the first say it is claimed.
test("A4 an owner's mark is synced before it gets its name, and its name before the claim resolves", async () => {
  const { calls, root, store } = await watched();
  expect(await store.claimOwner("mine")).toBe("mine");
  expect(calls).toEqual([
    "create temp",
    "write temp",
    "sync temp",
    "close temp",
    "link owner",
    "unlink temp",
    "syncDirectory root",
  ]);
  calls.length = 0;
  expect(await store.claimOwner("another's")).toBe("mine");
  expect(calls).toEqual([]);
  expect(await readdir(root)).toEqual(["owner"]);
});

test.each([["create"], ["write"], ["sync"], ["close"], ["link"], ["syncDirectory"]] as const)(
  "A4 a claim whose %s fails is StoreUnavailable, leaves no scratch file, and works when made again",
  async (call) => {
    const { failing, root, store } = await watched({ call });
    await expect(store.claimOwner("mine")).rejects.toThrow(StoreUnavailable);
    expect((await readdir(root)).filter((name) => name.startsWith("temp-"))).toEqual([]);
    expect(await store.readOwner()).toBe(call === "syncDirectory" ? "mine" : null);
    failing.call = null;
    expect(await store.claimOwner("mine")).toBe("mine");
  },
);

test("A4 of two processes that claim at once the store keeps one mark, and tells it to both", async () => {
  const rounds = 40;
  const script = join(import.meta.dirname, "claim-child.ts");
  const flags = ["--conditions=@keble-scraper/source", "--import", "tsx"];
  const started = await Promise.all(
    ["left", "right"].map(async (name) => {
      const child = spawn(process.execPath, [...flags, script, join(base, "store"), name, String(rounds)], {
        stdio: ["pipe", "pipe", "inherit"],
      });
      children.push(child);
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      expect((await lines.next()).value).toBe("ready");
      return { child, lines };
    }),
  );
  for (let round = 0; round < rounds; round += 1) {
    for (const { child } of started) child.stdin.write(`p${String(round)}\n`);
    const said = await Promise.all(started.map(async ({ lines }) => (await lines.next()).value as string));
    expect(said[0]).toMatch(/^(?:left|right)$/);
    expect(said[1]).toBe(said[0]);
  }
  for (const { child } of started) child.stdin.end();
});

test("A4 a link in the mark's place is not followed, and a longer text is read no further", async () => {
  const { root, store } = await watched();
  await writeFile(join(base, "secret"), "secret");
  await symlink(join(base, "secret"), join(root, "owner"));
  await expect(store.readOwner()).rejects.toThrow(StoreUnavailable);
  await rm(join(root, "owner"));
  await writeFile(join(root, "owner"), "x".repeat(10_000));
  expect((await store.readOwner())?.length).toBe(4096);
});

test("strays are scratch files of dead processes from before the given time, and nothing else", async () => {
  const { root, store } = await watched();
  const own = createMark();
  const [host = "", pid = "", , random = ""] = own.split("-");
  const dead = `${host}-${pid}-1-${random}`;
  const before = new Date(Date.now() - 60_000);
  const old = new Date(before.getTime() - 1000);
  const { makeDirectory } = LOCAL_DISK;
  await makeDirectory(join(root, "ab"));
  const stray = [join(root, `temp-${dead}`), join(root, "ab", `temp-${dead}`)];
  const kept = [
    join(root, `temp-${own}`),
    join(root, "temp-notes"),
    join(root, "ab", `${"ab".repeat(32)}.00000000000000aa`),
    join(root, "ab", `temp-${host}-${pid}-1-${"0".repeat(16)}`),
  ];
  for (const path of [...stray, ...kept]) {
    await writeFile(path, "x");
    await utimes(path, old, old);
  }
  await utimes(kept[3]!, new Date(), new Date());
  const aborted = new AbortController();
  aborted.abort();
  expect(await store.removeStrays(before, aborted.signal)).toBe(0);
  expect(await store.removeStrays(before, never)).toBe(2);
  const left = (await readdir(root, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  expect(left.map((entry) => join(entry.parentPath, entry.name)).toSorted()).toEqual(kept.toSorted());
});
