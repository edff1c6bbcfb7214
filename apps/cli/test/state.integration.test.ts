import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeProcess } from "@keble-scraper/local-servers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadStackSecrets } from "../src/stack/stack-secrets.ts";
import { openStateDirectory } from "../src/stack/state-directory.ts";
import { takeStateLock } from "../src/stack/state-lock.ts";

let root: string;

beforeEach(() => {
  root = join(mkdtempSync(join(tmpdir(), "keble-state-")), "state");
});
afterEach(() => {
  rmSync(join(root, ".."), { recursive: true, force: true });
});

describe("openStateDirectory", () => {
  it("makes folders and files that only their owner can read", () => {
    const state = openStateDirectory(root);
    loadStackSecrets(state);
    for (const folder of [state.root, state.logs, state.run]) expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(state.secrets).mode & 0o777).toBe(0o600);
  });

  it("refuses a newer version and changes nothing", () => {
    openStateDirectory(root);
    writeFileSync(join(root, "state.json"), '{"version":2}');
    expect(() => openStateDirectory(root)).toThrow(/newer Keble Scraper/);
    expect(readFileSync(join(root, "state.json"), "utf8")).toBe('{"version":2}');
  });

  it("refuses a version it can't read, and a path that is not a folder", () => {
    openStateDirectory(root);
    writeFileSync(join(root, "state.json"), "{");
    expect(() => openStateDirectory(root)).toThrow(expect.objectContaining({ reason: "STATE_UNUSABLE" }));
    const file = join(root, "file");
    writeFileSync(file, "");
    expect(() => openStateDirectory(file)).toThrow(/SCRAPER_STATE_DIRECTORY/);
  });
});

// In a process of its own: what it guards against is a loop that no time limit of a test can end.
it.runIf(process.platform === "linux")(
  "a state directory that can't be made, like one below /proc, is refused at once",
  () => {
    const module = new URL("../src/stack/state-directory.ts", import.meta.url).href;
    const source = `const { openStateDirectory } = await import(${JSON.stringify(module)});
      try { openStateDirectory("/proc/x/y") } catch (error) { console.log(error.reason, error.message) }`;
    const args = ["--conditions=@keble-scraper/source", "--import", "tsx", "--input-type=module", "--eval", source];
    const { stdout } = spawnSync(process.execPath, args, { encoding: "utf8", timeout: 20_000, killSignal: "SIGKILL" });
    expect(stdout).toMatch(/^STATE_UNUSABLE .*\/proc\/x.*\n.*SCRAPER_STATE_DIRECTORY/);
  },
  30_000,
);

describe("loadStackSecrets", () => {
  it("finds them again, and makes only what is missing", () => {
    const state = openStateDirectory(root);
    const first = loadStackSecrets(state);
    expect(loadStackSecrets(state)).toEqual(first);
    expect(Buffer.from(first.secretKey, "base64")).toHaveLength(32);
    writeFileSync(state.secrets, JSON.stringify({ secretKey: first.secretKey }));
    const second = loadStackSecrets(state);
    expect(second.secretKey).toBe(first.secretKey);
    expect(second.serviceToken).not.toBe(first.serviceToken);
  });
});

describe("takeStateLock", () => {
  it("is had by one at a time, and leaves nothing behind", () => {
    const { lock } = openStateDirectory(root);
    const unlock = takeStateLock(lock);
    expect(() => takeStateLock(lock)).toThrow(expect.objectContaining({ reason: "STATE_LOCKED" }));
    unlock();
    takeStateLock(lock)();
    expect(readdirSync(root).filter((name) => name.startsWith("up.lock"))).toEqual([]);
  });

  // After a reboot the pid in the file may be anybody's: only the start time tells.
  it("takes over a lock whose process is gone, although its pid is in use", () => {
    const { lock } = openStateDirectory(root);
    const me = describeProcess(process.pid)!;
    const dead = { name: "up", pid: process.pid, startId: "an earlier boot", owner: { pid: 1, startId: "x" } };
    writeFileSync(lock, JSON.stringify(dead));
    const unlock = takeStateLock(lock);
    expect(JSON.parse(readFileSync(lock, "utf8"))).toMatchObject({ pid: process.pid, startId: me.startId });
    unlock();
    expect(existsSync(lock)).toBe(false);
  });

  it("takes over a lock that holds no record", () => {
    const { lock } = openStateDirectory(root);
    writeFileSync(lock, "");
    takeStateLock(lock)();
    expect(existsSync(lock)).toBe(false);
  });
});
