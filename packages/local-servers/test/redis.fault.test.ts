import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeProcess, isSameProcess, readProcessRecord, type RunningServer, startRedis } from "../src/index.ts";

let folder: string;
let running: RunningServer[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "keble-redis-test-"));
  running = [];
});

afterEach(async () => {
  for (const server of running) await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function start(path = process.env["PATH"] ?? ""): Promise<RunningServer> {
  const server = await startRedis({ path, directory: join(folder, "redis"), logFile: join(folder, "redis.log") });
  running.push(server);
  return server;
}

async function ask(port: number, command: string): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.write(`${command}\r\n`);
  const [data] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  return data.toString();
}

describe("startRedis", () => {
  it("keeps nothing on disk, refuses writes when full and leaves the record only while it runs", async () => {
    const server = await start();
    const record = join(folder, "redis", "redis.process.json");
    expect(readProcessRecord(record)).toMatchObject({ name: "redis", pid: server.pid, owner: { pid: process.pid } });
    expect(await ask(server.port, "CONFIG GET maxmemory-policy")).toContain("noeviction");
    expect(await ask(server.port, "CONFIG GET save")).toContain("$0");
    expect(await ask(server.port, "SET a 1")).toBe("+OK\r\n");
    await server.stop();
    expect(await server.exited).toEqual({ code: 0, signal: null });
    expect(existsSync(record)).toBe(false);
    expect(existsSync(join(folder, "redis", "dump.rdb"))).toBe(false);
  });

  it("says REDIS_MISSING when the PATH has none", async () => {
    await expect(start(folder)).rejects.toMatchObject({ code: "REDIS_MISSING" });
  });

  it("stops a leftover of a dead owner, but neither a live owner's server nor a program that has its pid by now", async () => {
    const first = await start();
    const record = join(folder, "redis", "redis.process.json");
    await expect(start()).rejects.toMatchObject({ code: "FOLDER_IN_USE" });

    const written = readProcessRecord(record)!;
    writeFileSync(
      record,
      JSON.stringify({ ...written, owner: { pid: written.owner.pid, startId: "an earlier boot" } }),
    );
    const second = await start();
    expect(isSameProcess(first.pid, written.startId)).toBe(false);

    await second.stop();
    const other = spawn("sleep", ["60"]);
    writeFileSync(record, JSON.stringify({ ...written, pid: other.pid, owner: { pid: 1, startId: "gone" } }));
    await start();
    expect(describeProcess(other.pid!)).not.toBeNull();
    other.kill("SIGKILL");
  });
});
