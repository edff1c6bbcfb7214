import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isSameProcess, readProcessRecord } from "@keble-scraper/local-servers";
import { describe, expect, it, vi } from "vitest";
import { shareTestServers } from "../src/servers/test-servers.ts";

const MODULE = join(import.meta.dirname, "../src/servers/test-servers.ts");

describe("shareTestServers", () => {
  // A run that is killed leaves two servers and a folder; without the sweep a machine fills up with them.
  it("ends the servers of a run that was killed, and removes its folder", async () => {
    const home = mkdtempSync(join(tmpdir(), "keble-leftovers-"));
    const script = join(home, "run.mts");
    writeFileSync(
      script,
      `import { shareTestServers } from ${JSON.stringify(MODULE)}
       await shareTestServers()
       process.stdout.write("started")
       setInterval(() => undefined, 1000)`,
    );
    const run = spawn(process.execPath, ["--conditions=@keble-scraper/source", "--import", "tsx", script], {
      cwd: import.meta.dirname,
      env: { ...process.env, TMPDIR: home },
    });
    vi.stubEnv("TMPDIR", home);
    try {
      await once(run.stdout, "data");
      const [folder] = readdirSync(home).filter((name) => name.startsWith("keble-testkit-"));
      const records = ["postgres.process.json", "redis/redis.process.json"].map((file) =>
        readProcessRecord(join(home, folder!, file))!,
      );
      const isAlive = () => records.map(({ pid, startId }) => isSameProcess(pid, startId));
      const second = await shareTestServers();
      expect(isAlive()).toEqual([true, true]);
      await second.release();

      run.kill("SIGKILL");
      await once(run, "exit");
      expect(isAlive()).toEqual([true, true]);
      const third = await shareTestServers();
      expect(isAlive()).toEqual([false, false]);
      expect(existsSync(join(home, folder!))).toBe(false);
      await third.release();
      expect(readdirSync(home).filter((name) => name.startsWith("keble-testkit-"))).toEqual([]);
    } finally {
      run.kill("SIGKILL");
      vi.unstubAllEnvs();
      rmSync(home, { recursive: true, force: true });
    }
  });
});
