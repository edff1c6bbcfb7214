import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import postgres from "postgres";
import { describeProcess, isSameProcess, type RunningServer, startPostgres } from "../src/index.ts";

let folder: string;
let running: { stop(): Promise<unknown> }[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "keble-pg-test-"));
  running = [];
});

afterEach(async () => {
  for (const server of running.toReversed()) await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function start(options: { port?: number } = {}): Promise<RunningServer> {
  const server = await startPostgres({
    directory: join(folder, "postgres"),
    logFile: join(folder, "postgres.log"),
    settings: { fsync: "off" },
    ...options,
  });
  running.push(server);
  return server;
}

async function query(url: string, text: string): Promise<unknown[]> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return await sql.unsafe(text);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

function child(command: string, args: string[]): ChildProcess {
  const process = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  running.push({
    stop: async () => {
      if (process.exitCode === null && process.signalCode === null && process.kill("SIGKILL"))
        await once(process, "exit");
    },
  });
  return process;
}

describe("startPostgres", () => {
  it("keeps data and password over a stop and a start, in folders that only the owner can read", async () => {
    const first = await start();
    await query(first.url, "create table kept (n int); insert into kept values (7)");
    await first.stop();
    expect(await first.exited).toEqual({ code: 0, signal: null });
    expect(describeProcess(first.pid)).toBeNull();
    expect(statSync(join(folder, "postgres")).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, "postgres.password")).mode & 0o777).toBe(0o600);
    const second = await start();
    expect(await query(second.url, "select n from kept")).toEqual([{ n: 7 }]);
  });

  it("refuses a client without the password", async () => {
    const server = await start();
    const url = new URL(server.url);
    url.password = "wrong";
    await expect(query(url.href, "select 1")).rejects.toMatchObject({ code: "28P01" });
  });

  it("starts again at once after its server was killed", async () => {
    const first = await start();
    await query(first.url, "create table kept (n int)");
    process.kill(first.pid, "SIGKILL");
    expect(await first.exited).toEqual({ code: null, signal: "SIGKILL" });
    const second = await start();
    expect(await query(second.url, "select count(*)::int as n from kept")).toEqual([{ n: 0 }]);
  });

  // A pid file from before a reboot may name a pid that some other program has by now: Postgres would refuse to start.
  it("starts when postmaster.pid names another program, and leaves that program alone", async () => {
    const first = await start();
    process.kill(first.pid, "SIGKILL");
    await first.exited;
    const other = child("sleep", ["60"]);
    const pidFile = join(folder, "postgres", "postmaster.pid");
    const [, ...rest] = readFileSync(pidFile, "utf8").split("\n");
    writeFileSync(pidFile, [String(other.pid), ...rest].join("\n"));
    const second = await start();
    expect(await query(second.url, "select 1 as n")).toEqual([{ n: 1 }]);
    expect(describeProcess(other.pid!)).not.toBeNull();
  });

  // The parent is killed the hard way, so its detached server lives on; the next start must not run beside it.
  it("stops the server that a killed parent left behind and takes its folder over", async () => {
    const index = join(import.meta.dirname, "../src/index.ts");
    const script = `import { startPostgres } from ${JSON.stringify(index)}
      const server = await startPostgres({ directory: ${JSON.stringify(join(folder, "postgres"))}, logFile: ${JSON.stringify(join(folder, "postgres.log"))}, settings: { fsync: "off" } })
      process.stdout.write(String(server.pid) + "\\n")
      setInterval(() => undefined, 1000)`;
    const file = join(folder, "parent.mts");
    writeFileSync(file, script);
    const parent = child(process.execPath, ["--import", "tsx", file]);
    const [line] = (await once(parent.stdout!, "data")) as [Buffer];
    const pid = Number(line.toString());
    const left = describeProcess(pid)!;
    await expect(start()).rejects.toMatchObject({ code: "FOLDER_IN_USE" });
    expect(isSameProcess(pid, left.startId)).toBe(true);

    parent.kill("SIGKILL");
    await once(parent, "exit");
    expect(isSameProcess(pid, left.startId)).toBe(true);
    const next = await start();
    expect(isSameProcess(pid, left.startId)).toBe(false);
    expect(await query(next.url, "select 1 as n")).toEqual([{ n: 1 }]);
  });

  // In a container root has no user namespaces: the server then runs as another user of the machine, on a folder it owns.
  it("runs as another user where root may not open a namespace, and keeps to that user's folder ever after", async () => {
    const fake = join(folder, "unshare");
    writeFileSync(fake, "#!/bin/sh\nexit 1\n", { mode: 0o755 });
    chmodSync(folder, 0o755);
    vi.stubEnv("PATH", `${folder}:${process.env["PATH"]}`);
    const first = await start();
    const owner = statSync(join(folder, "postgres")).uid;
    expect(owner === 0).toBe(false);
    await query(first.url, "create table kept (n int)");
    await first.stop();
    vi.unstubAllEnvs();
    const second = await start();
    expect(await query(second.url, "select * from kept")).toEqual([]);
    expect(statSync(join(folder, "postgres")).uid).toBe(owner);
  });

  it("names a taken port, a foreign folder and a lost password, and leaves nothing running", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    running.push({ stop: async () => void taken.close() });
    await once(taken, "listening");
    const { port } = taken.address() as { port: number };
    await expect(start({ port })).rejects.toMatchObject({ code: "PORT_TAKEN" });

    const first = await start();
    await first.stop();
    rmSync(join(folder, "postgres.password"));
    await expect(start()).rejects.toMatchObject({ code: "DATA_UNUSABLE" });
    writeFileSync(join(folder, "postgres.password"), "another");
    await expect(start()).rejects.toMatchObject({ code: "DATA_UNUSABLE" });
    rmSync(join(folder, "postgres", "PG_VERSION"));
    await expect(start()).rejects.toMatchObject({ code: "DATA_UNUSABLE" });
    expect(existsSync(join(folder, "postgres", "postmaster.pid"))).toBe(false);
  });

  it("gives concurrent stops one shutdown", async () => {
    const server = await start();
    await Promise.all([server.stop(), server.stop()]);
    expect(await server.exited).toEqual({ code: 0, signal: null });
  });
});
