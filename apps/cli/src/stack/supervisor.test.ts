import { beforeEach, describe, expect, it } from "vitest";
import { type Launched, supervise, type Supervisor } from "./supervisor.ts";

type Fake = Launched & { end(how: string): void; isStopped: boolean };

let launches: Fake[];
let pids: (number | null)[];
let pauses: number[];
let lines: string[];
let failures: number;
let nowMs: number;
let launchGate: Promise<void>;

beforeEach(() => {
  [launches, pids, pauses, lines, failures, nowMs] = [[], [], [], [], 0, 0];
  launchGate = Promise.resolve();
});

function createFake(pid: number): Fake {
  let end: (how: string) => void = () => undefined;
  const ended = new Promise<string>((resolve) => (end = resolve));
  const fake: Fake = {
    pid,
    ended,
    end,
    isStopped: false,
    stop: () => {
      fake.isStopped = true;
      end("exit 0");
      return Promise.resolve();
    },
    kill: () => end("SIGKILL"),
  };
  return fake;
}

/** Pauses pass at once, unless `pause` says otherwise. */
function create(pause: (signal: AbortSignal) => Promise<void> = () => Promise.resolve()): Supervisor {
  return supervise({
    name: "worker",
    print: (line) => lines.push(line),
    onPid: (pid) => pids.push(pid),
    time: {
      monotonicMs: () => nowMs,
      pause: (milliseconds, signal) => {
        pauses.push(milliseconds);
        return pause(signal);
      },
    },
    launch: (onSpawn) => {
      const pid = launches.length + 1;
      onSpawn(pid);
      if (failures > 0) {
        failures -= 1;
        return Promise.reject(new Error("no"));
      }
      const fake = createFake(pid);
      launches.push(fake);
      return launchGate.then(() => fake);
    },
  });
}

/** Ends the last child and resolves when the next one runs. */
async function endLast(how: string): Promise<void> {
  const before = launches.length;
  launches.at(-1)!.end(how);
  await expect.poll(() => launches.length, { interval: 1 }).toBe(before + 1);
}

describe("supervise", () => {
  it("starts a child that died again, each time after twice the pause, up to ten seconds", async () => {
    const supervisor = create();
    await supervisor.start();
    for (let i = 0; i < 8; i++) await endLast("SIGKILL");
    expect(pauses).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
    expect(lines[0]).toBe("worker ended (SIGKILL); it starts again in 250 ms");
    await supervisor.stop();
  });

  it("pauses 250 ms again after a run of 30 s, and not before", async () => {
    const supervisor = create();
    await supervisor.start();
    await endLast("exit 1");
    nowMs += 29_999;
    await endLast("exit 1");
    nowMs += 30_000;
    await endLast("exit 1");
    expect(pauses).toEqual([250, 500, 250]);
    await supervisor.stop();
  });

  it("goes on trying when a restart fails, and tells of no pid meanwhile", async () => {
    const supervisor = create();
    await supervisor.start();
    failures = 5;
    await endLast("exit 1");
    expect(pauses).toHaveLength(6);
    expect(pids.filter((pid) => pid === null)).toHaveLength(6);
    expect(pids.at(-1)).toBe(2);
    await supervisor.stop();
  });

  it("gives up the first start after three tries", async () => {
    failures = 3;
    await expect(create().start()).rejects.toThrow("no");
    expect(launches).toHaveLength(0);
    expect(pauses).toEqual([250, 500]);
  });

  it("stops its child once, whoever asks, and does not start it again", async () => {
    const supervisor = create();
    await supervisor.start();
    await Promise.all([supervisor.stop(), supervisor.stop()]);
    expect(launches[0]!.isStopped).toBe(true);
    expect(launches).toHaveLength(1);
    expect(pids.at(-1)).toBeNull();
  });

  it("waits for a launch that is under way when it is stopped, and stops what came of it", async () => {
    let open: () => void = () => undefined;
    launchGate = new Promise((resolve) => (open = resolve));
    const supervisor = create();
    const started = supervisor.start();
    const stopped = supervisor.stop().then(() => "stopped");
    const nextTurn = new Promise((resolve) => setImmediate(() => resolve("waiting")));
    expect(await Promise.race([stopped, nextTurn])).toBe("waiting");
    open();
    await stopped;
    expect(launches[0]!.isStopped).toBe(true);
    await started;
    expect(launches).toHaveLength(1);
  });

  it("starts nothing when it is stopped between two lives", async () => {
    let inPause: () => void = () => undefined;
    const paused = new Promise<void>((resolve) => (inPause = resolve));
    const supervisor = create((signal) => {
      inPause();
      return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
    });
    await supervisor.start();
    launches[0]!.end("SIGKILL");
    await paused;
    await supervisor.stop();
    expect(launches).toHaveLength(1);
  });
});
