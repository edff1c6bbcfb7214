import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describeProcess, isSameProcess } from "@keble-scraper/local-servers";
import { createTestDatabase, type Stack, startReceiver, startStack, testRedis } from "@keble-scraper/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const BINARY = fileURLToPath(new URL("../bin/keble-scraper.js", import.meta.url));
const FAST = { SCRAPER_DRAIN_GRACE_SECONDS: "2", SCRAPER_POLL_INTERVAL_SECONDS: "1" };
const NAMES = [
  "artifacts",
  "beat",
  "callbacks",
  "fetching",
  "gateway",
  "intake",
  "postgres",
  "redis",
  "retention",
  "worker-callbacks",
  "worker-fetch-1",
  "worker-maintenance",
  "worker-proxy-health",
];
const run = promisify(execFile);

let home: string;
let state: string;

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "keble-up-"));
  state = join(home, "state");
});
afterAll(() => {
  rmSync(home, { recursive: true, force: true });
});

/** A command of the built binary that is expected to end by itself. */
async function command(args: string[], env: Record<string, string>): Promise<{ code: number | null; text: string }> {
  const child = spawn(process.execPath, [BINARY, ...args], { env: { PATH: process.env["PATH"], ...env } });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, text: Buffer.concat(chunks).toString() };
}

function originUrl(): string {
  const { origin } = JSON.parse(readFileSync(join(state, "site.json"), "utf8")) as { origin: string };
  return `http://127.0.0.1:${origin}`;
}

async function fetchOnce(stack: Stack): Promise<string> {
  const job = await stack.api.submit({ target: { url: `${originUrl()}/` } });
  expect(await stack.api.finished(job.id)).toMatchObject({ status: "SUCCEEDED" });
  return job.id;
}

describe("keble-scraper up", () => {
  it("brings back every process that is killed, databases too, and finds data and keys again at the next start", async () => {
    let jobId: string;
    let keys: object;
    {
      await using stack = await startStack({ stateDirectory: state, env: FAST });
      keys = { serviceKey: stack.serviceKey, operatorKey: stack.operatorKey };
      expect(Object.keys(stack.processes()).toSorted()).toEqual(NAMES);
      expect(new Set(Object.values(stack.processes())).size).toBe(NAMES.length);
      jobId = await fetchOnce(stack);
      const victims = ["postgres", "redis", "gateway", "intake", "worker-fetch-1"];
      const killed = victims.map((name) => [name, stack.kill(name)] as const);
      for (const [name, pid] of killed) await stack.waitForRestart(name, pid);
      await expect.poll(() => isReady(stack), { timeout: 20_000, interval: 100 }).toBe(true);
      await fetchOnce(stack);
      expect(await stack.stop("SIGINT")).toBe(0);
    }
    expect(JSON.parse(readFileSync(join(state, "processes.json"), "utf8"))).toEqual({});
    expect(existsSync(join(state, "up.lock"))).toBe(false);
    for (const file of ["credentials.json", "secrets.json", "processes.json"]) {
      expect(statSync(join(state, file)).mode & 0o777).toBe(0o600);
    }

    await using again = await startStack({ stateDirectory: state, env: FAST, args: ["--processes=compact"] });
    expect({ serviceKey: again.serviceKey, operatorKey: again.operatorKey }).toEqual(keys);
    expect((await again.api.call("GET", `/v1/jobs/${jobId}`)).status).toBe(200);
    expect(again.pidOf("gateway")).toBe(again.pidOf("intake"));
  }, 120_000);

  it("runs a first job to a verified callback, and prints a curl that works", async () => {
    const child = spawn(process.execPath, [BINARY, "up"], {
      env: { PATH: process.env["PATH"], SCRAPER_STATE_DIRECTORY: state, SCRAPER_GATEWAY_PORT: "0", ...FAST },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    const chunks: string[] = [];
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (chunk: Buffer) => chunks.push(String(chunk)));
    const exited = once(child, "exit");
    try {
      await Promise.race([once(child, "message"), exited]);
      const output = chunks.join("");
      expect(output).toMatch(/outcome {4}SUCCEEDED, HTTP 200 by DIRECT after 1 redirect/);
      expect(output).toContain("signed link, the same SHA-256");
      expect(output).toContain("job.succeeded, signature verified");
      const curl = /^ {2}(curl .*)$/m.exec(output)?.[1] ?? "false";
      const { stdout } = await run("sh", ["-c", curl]);
      expect(JSON.parse(stdout)).toMatchObject({ status: "SUCCEEDED" });

      const second = await command(["up"], { SCRAPER_STATE_DIRECTORY: state });
      expect(second.code).toBe(3);
      expect(second.text).toContain(`pid ${child.pid}`);
      child.kill("SIGTERM");
      expect((await exited)[0]).toBe(0);
    } finally {
      child.kill("SIGTERM");
      await exited;
    }
  }, 120_000);

  it("uses the Postgres and the Redis it is given, and starts none of its own", async () => {
    await using database = await createTestDatabase({ migrate: () => Promise.resolve(), template: "empty" });
    const { url: redisUrl, prefix } = await testRedis();
    const env = {
      ...FAST,
      SCRAPER_DATABASE_URL: database.url,
      SCRAPER_MIGRATION_DATABASE_URL: database.migrationUrl,
      SCRAPER_REDIS_URL: redisUrl,
      SCRAPER_REDIS_PREFIX: prefix.replace(":", ""),
    };
    await using stack = await startStack({ env, args: ["--processes=compact", "--fetch-workers=2"] });
    expect(Object.keys(stack.processes()).toSorted()).toEqual(
      [...NAMES, "worker-fetch-2"].filter((name) => name !== "postgres" && name !== "redis").toSorted(),
    );
    expect(stack.pidOf("worker-fetch-2")).toBe(stack.pidOf("worker-fetch-1"));
    const { origin } = JSON.parse(readFileSync(join(stack.stateDirectory, "site.json"), "utf8")) as { origin: string };
    const job = await stack.api.submit({ target: { url: `http://127.0.0.1:${origin}/` } });
    expect(await stack.api.finished(job.id)).toMatchObject({ status: "SUCCEEDED" });
  }, 120_000);

  // A launcher that is killed can stop nothing: its children notice, and the databases wait for the next start.
  it("leaves no process of its own behind when it is killed, and takes over its databases at the next start", async () => {
    const first = await startStack({ stateDirectory: state, env: FAST });
    const children = Object.entries(first.processes()).map(([name, pid]) => ({ name, pid, ...describeProcess(pid)! }));
    await first.stop("SIGKILL");
    const ours = children.filter(({ name }) => name !== "postgres" && name !== "redis");
    const left = () => ours.filter(({ pid, startId }) => isSameProcess(pid, startId)).map(({ name }) => name);
    await expect.poll(left, { timeout: 20_000, interval: 50 }).toEqual([]);

    await using second = await startStack({ stateDirectory: state, env: FAST });
    for (const { pid, startId } of children) expect(isSameProcess(pid, startId)).toBe(false);
    await fetchOnce(second);
  }, 120_000);

  it("ends cleanly when it is told to while it still starts", async () => {
    for (const step of ["Postgres", "Redis", "Migrations"]) {
      const env = { PATH: process.env["PATH"], SCRAPER_STATE_DIRECTORY: state, SCRAPER_GATEWAY_PORT: "0", ...FAST };
      const child = spawn(process.execPath, [BINARY, "up"], { env, stdio: ["ignore", "pipe", "inherit"] });
      const exited = once(child, "exit");
      let output = "";
      await new Promise<void>((resolve) => {
        child.stdout.on("data", (chunk: Buffer) => {
          output += chunk.toString();
          if (output.includes(step)) resolve();
        });
        child.once("exit", () => resolve());
      });
      child.kill("SIGTERM");
      expect((await exited)[0], output).toBe(0);
      expect(existsSync(join(state, "postgres", "postmaster.pid"))).toBe(false);
      expect(readdirSync(join(state, "run"))).toEqual([]);
      expect(existsSync(join(state, "up.lock"))).toBe(false);
    }
  }, 120_000);

  it("drains at the first signal, though npm repeats it, and ends everything at once at a second one", async () => {
    await using receiver = await startReceiver({ answers: { "/slow": ["HANG"] } });
    const env = { ...FAST, SCRAPER_DRAIN_GRACE_SECONDS: "60", SCRAPER_DEVELOPMENT_ALLOWED_TARGETS: receiver.hostPort };
    await using stack = await startStack({ stateDirectory: state, env });
    await stack.api.submit({ target: { url: `${receiver.url}/slow` } });
    await receiver.waitFor(({ path }) => path === "/slow");
    const worker = stack.pidOf("worker-fetch-1");
    const { startId } = describeProcess(worker)!;
    // Two kinds, since the system may merge two equal ones into one.
    process.kill(stack.pid, "SIGINT");
    process.kill(stack.pid, "SIGTERM");
    await expect.poll(() => stack.output(), { interval: 10 }).toContain("Stopping");
    expect(isSameProcess(worker, startId)).toBe(true);
    // What comes within half a second of the first is its repetition; the first that comes later ends everything, with its
    // own code: 143 would be the SIGTERM's above.
    const up = describeProcess(stack.pid)!;
    const press = setInterval(() => {
      if (isSameProcess(stack.pid, up.startId)) process.kill(stack.pid, "SIGINT");
    }, 50);
    const from = performance.now();
    expect(await stack.stop("SIGINT").finally(() => clearInterval(press))).toBe(130);
    expect(performance.now() - from).toBeLessThan(5_000);
  }, 120_000);

  it("says what is wrong, with an exit code of its own, and starts nothing", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as { port: number };
    const other = join(home, "other");
    const busy = await command(["up"], { SCRAPER_STATE_DIRECTORY: other, SCRAPER_GATEWAY_PORT: String(port) });
    taken.close();
    expect(busy).toMatchObject({ code: 5, text: expect.stringContaining("SCRAPER_GATEWAY_PORT") as string });

    const newer = join(home, "newer");
    mkdirSync(newer);
    writeFileSync(join(newer, "state.json"), '{"version":99}');
    expect(await command(["up"], { SCRAPER_STATE_DIRECTORY: newer })).toMatchObject({ code: 4 });

    const file = join(home, "file");
    writeFileSync(file, "");
    const unusable = await command(["up"], { SCRAPER_STATE_DIRECTORY: file });
    expect(unusable).toMatchObject({ code: 4, text: expect.stringContaining("SCRAPER_STATE_DIRECTORY") as string });

    const urls = { SCRAPER_DATABASE_URL: "postgres://nobody:nothing@127.0.0.1:9/x", SCRAPER_GATEWAY_PORT: "0" };
    const noDatabase = await command(["up"], { SCRAPER_STATE_DIRECTORY: other, ...urls });
    expect(noDatabase).toMatchObject({ code: 6, text: expect.stringContaining("SCRAPER_DATABASE_URL") as string });
    expect(noDatabase.text).not.toContain("nothing");

    expect(await command(["up", "--processes=some"], {})).toMatchObject({ code: 2 });
    const bad = await command(["up"], {
      SCRAPER_STATE_DIRECTORY: other,
      SCRAPER_LEASE_SECONDS: "1",
      SCRAPER_FETCH_SLOTS: "x",
    });
    expect(bad.code).toBe(2);
    for (const name of ["SCRAPER_LEASE_SECONDS", "SCRAPER_FETCH_SLOTS"]) expect(bad.text).toContain(name);
    expect(existsSync(join(other, "postgres"))).toBe(false);
  }, 120_000);
});

async function isReady(stack: Stack): Promise<boolean> {
  try {
    return (await stack.api.call("GET", "/readyz", { key: null })).status === 200;
  } catch {
    return false;
  }
}
