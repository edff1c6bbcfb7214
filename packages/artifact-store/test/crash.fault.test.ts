import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createGeneration, createLocalStore, createSpool } from "../src/index.ts";
import { createMark, isStrayMark } from "../src/process-mark.ts";
import { spoolBytes } from "./conformance.ts";

const never = new AbortController().signal;
const BYTES = Buffer.alloc(600_000, 7);
let base = "";
const children: ChildProcess[] = [];

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "keble-crash-"));
});
afterEach(async () => {
  await Promise.all(children.splice(0).map(kill));
  await rm(base, { recursive: true });
});

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

/** A process that has reached the point and hangs there. */
async function hangingAt(point: string, generation = createGeneration()): Promise<ChildProcess> {
  const script = join(import.meta.dirname, "crash-child.ts");
  const flags = ["--conditions=@keble-scraper/source", "--import", "tsx"];
  const child = spawn(process.execPath, [...flags, script, base, point, generation], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout })) if (line === `reached ${point}`) return child;
  throw new Error(`the process ended before ${point}`);
}

function openHere() {
  const spool = createSpool({ directory: join(base, "spool") });
  const store = createLocalStore({ directory: join(base, "store"), prefix: "p" });
  return {
    spool,
    store,
    start: async (): Promise<void> => {
      await spool.start(never);
      await store.start(never);
    },
  };
}

async function storeFiles(): Promise<string[]> {
  const names = await readdir(join(base, "store"), { recursive: true, withFileTypes: true });
  return names.filter((entry) => entry.isFile()).map((entry) => entry.name);
}

test("the spool files of a killed process go at the next start, those of a live one stay", async () => {
  const [killed] = await Promise.all([hangingAt("spooling"), hangingAt("spooled")]);
  const { spool, start } = openHere();
  const own = await spoolBytes(spool, BYTES);
  expect((await readdir(join(base, "spool"))).length).toBe(3);
  await start();
  expect((await readdir(join(base, "spool"))).length).toBe(3);
  await kill(killed);
  await start();
  expect((await readdir(join(base, "spool"))).length).toBe(2);
  await own.discard();
});

test.each(["temp-written", "temp-synced"])(
  "A1 a writer killed at %s leaves no object, its temp file goes at the next start, and the put works when sent again",
  async (point) => {
    const generation = createGeneration();
    const child = await hangingAt(point, generation);
    const { spool, start, store } = openHere();
    const body = await spoolBytes(spool, BYTES);
    const key = { sha256: body.sha256, generation };
    await start();
    expect((await storeFiles()).length).toBe(1);
    expect(await store.head(key)).toBeNull();
    expect(await store.list(null)).toEqual({ items: [], nextCursor: null });
    await kill(child);
    await start();
    expect(await storeFiles()).toEqual([]);
    await store.put(body, key);
    expect(await store.head(key)).toEqual({ sizeBytes: BYTES.byteLength });
    await body.discard();
  },
);

test("A1 a writer killed after its object got its name leaves the whole object and, after the next start, nothing else", async () => {
  const generation = createGeneration();
  await kill(await hangingAt("named", generation));
  const { spool, start, store } = openHere();
  const body = await spoolBytes(spool, BYTES);
  const key = { sha256: body.sha256, generation };
  expect((await storeFiles()).length).toBe(2);
  await start();
  expect(await storeFiles()).toEqual([`${key.sha256}.${generation}`]);
  expect(await store.head(key)).toEqual({ sizeBytes: BYTES.byteLength });
  await store.put(body, key);
  await body.discard();
});

// In a container every process of ours has the same process id, so the id alone would keep a dead one's files for ever.
test("a mark of an earlier process with our process id is stray, our own never", () => {
  const mark = createMark();
  expect(isStrayMark(mark, Number.MAX_SAFE_INTEGER)).toBe(false);
  const [host = "", pid = "", , random = ""] = mark.split("-");
  expect(isStrayMark(`${host}-${pid}-1-${random}`, 0)).toBe(true);
});
