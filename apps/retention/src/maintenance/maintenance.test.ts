import type { DueJob } from "@keble-scraper/db";
import { type BellKind, createLogger } from "@keble-scraper/service";
import { describe, expect, test } from "vitest";
import { deadlineDelayMs } from "./deadline-delay.ts";
import { DUE_JOBS_MAX, publishDueJobs } from "./publish-due-jobs.ts";
import { sweep } from "./sweep.ts";
import { createTick } from "./tick.ts";

const never = new AbortController().signal;

function dueJobs(count: number, transport: DueJob["transport"] = "HTTP"): DueJob[] {
  return Array.from({ length: count }, (_, index) => ({ id: `${transport}-${index}`, transport }));
}

describe("announcing due jobs", () => {
  test("J8 one read, then each id with its transport, at most so many rings at once", async () => {
    const reads: number[] = [];
    const rings: (readonly [BellKind, object])[] = [];
    let atOnce = 0;
    let atOnceMax = 0;
    const published = await publishDueJobs(
      {
        concurrency: 4,
        list(limit) {
          reads.push(limit);
          return Promise.resolve([...dueJobs(20), ...dueJobs(2, "RENDER")]);
        },
        async publish(kind, payload) {
          atOnce += 1;
          atOnceMax = Math.max(atOnceMax, atOnce);
          await Promise.resolve();
          atOnce -= 1;
          rings.push([kind, payload]);
          return true;
        },
      },
      never,
    );
    expect(published).toBe(22);
    expect(reads).toEqual([DUE_JOBS_MAX]);
    expect(atOnceMax).toBe(4);
    expect(rings).toContainEqual(["fetch", { transport: "HTTP", jobId: "HTTP-7" }]);
    expect(rings).toContainEqual(["render", { transport: "RENDER", jobId: "RENDER-1" }]);
  });

  test("J8 a bell that takes no more is rung no more, and harms no other bell", async () => {
    let fetchRings = 0;
    let renderRings = 0;
    const published = await publishDueJobs(
      {
        concurrency: 1,
        list: () => Promise.resolve([...dueJobs(50), ...dueJobs(5, "RENDER")]),
        publish(kind) {
          if (kind === "render") {
            renderRings += 1;
            return Promise.resolve(true);
          }
          fetchRings += 1;
          return Promise.resolve(fetchRings < 3);
        },
      },
      never,
    );
    expect([fetchRings, renderRings, published]).toEqual([3, 5, 7]);
  });

  test("a stop ends it between two rings", async () => {
    const stopper = new AbortController();
    let rings = 0;
    await publishDueJobs(
      {
        concurrency: 1,
        list: () => Promise.resolve(dueJobs(50)),
        publish() {
          rings += 1;
          stopper.abort();
          return Promise.resolve(true);
        },
      },
      stopper.signal,
    );
    expect(rings).toBe(1);
  });
});

describe("a sweep", () => {
  test("goes on until a batch comes back short", async () => {
    const batches = [10, 10, 3, 10];
    expect(await sweep(10, () => Promise.resolve(batches.shift() ?? 0), never)).toBe(23);
    expect(batches).toEqual([10]);
  });

  test("ends between two batches when it is stopped", async () => {
    const stopper = new AbortController();
    let batches = 0;
    const total = await sweep(
      10,
      () => {
        batches += 1;
        stopper.abort();
        return Promise.resolve(10);
      },
      stopper.signal,
    );
    expect([batches, total]).toEqual([1, 10]);
  });
});

describe("a tick", () => {
  test("a step that throws harms no other, and is logged once per change; a tick that did something is one line", async () => {
    const lines: Record<string, unknown>[] = [];
    const logger = createLogger({
      name: "test",
      level: "info",
      destination: { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
    });
    let isBroken = true;
    const tick = createTick(
      [
        { name: "first", run: () => (isBroken ? Promise.reject(new Error("no database")) : Promise.resolve(0)) },
        { name: "second", run: () => Promise.resolve(2) },
      ],
      logger,
    );
    await tick(never);
    await tick(never);
    isBroken = false;
    await tick(never);
    expect(lines.map((line) => line["msg"])).toEqual([
      "maintenance.step_failed",
      "maintenance.ticked",
      "maintenance.ticked",
      "maintenance.step_recovered",
      "maintenance.ticked",
    ]);
    expect(lines.at(-1)).toMatchObject({ first: 0, second: 2 });
  });

  test("a stop ends it after its step", async () => {
    const stopper = new AbortController();
    const ran: string[] = [];
    const step = (name: string) => ({
      name,
      run() {
        ran.push(name);
        stopper.abort();
        return Promise.resolve(0);
      },
    });
    await createTick([step("first"), step("second")], createLogger({ name: "test", level: "silent" }))(stopper.signal);
    expect(ran).toEqual(["first"]);
  });
});

describe("the look at deadlines", () => {
  test.each([
    ["no open job", null, 1_000],
    ["a deadline far away", 60_000, 1_000],
    ["a deadline soon", 300.2, 301],
    ["a deadline at once", 0.4, 100],
    ["a job in its abort grace", -500, 1_000],
    ["a job at the end of its abort grace", -1_700, 300],
    ["a job past its abort grace", -9_000, 100],
  ])("comes when it is due: %s", (_what, nextMs, delayMs) => {
    expect(deadlineDelayMs(nextMs, 2_000)).toBe(delayMs);
  });
});
