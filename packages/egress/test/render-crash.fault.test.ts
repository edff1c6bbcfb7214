import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { createGate, type Origin, page, requireChromium, startOrigin } from "@keble-scraper/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BrowserCrashed, findChromium } from "../src/render/index.ts";
import { openRenderRig, type RenderRig } from "./render-rig.ts";

const HTML = "text/html; charset=utf-8";
const BASE = "http://origin.example.com/";

let origin: Origin;

beforeAll(async () => {
  await requireChromium(() => findChromium(null));
  origin = await startOrigin({ paths: { "/": page("<p>fine", HTML), "/wait": page("<p>wait<img src=/held>", HTML) } });
  origin.on("/held", async (reply) => {
    await reply.closed;
  });
}, 300_000);

afterAll(async () => {
  await origin.stop();
});

type Running = { readonly pid: number; readonly parent: number; readonly command: string };

/** The processes of browsers below one process, by the kernel's own list. */
function browserProcesses(ancestor: number): Running[] {
  const all = readdirSync("/proc").flatMap((name): Running[] => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1");
      const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (state === "Z") return [];
      const command = readFileSync(`/proc/${name}/cmdline`, "latin1").replaceAll("\0", " ");
      return [{ pid: Number(name), parent: Number(parent), command }];
    } catch {
      return [];
    }
  });
  const below = (pid: number): Running[] =>
    all.filter(({ parent }) => parent === pid).flatMap((one) => [one, ...below(one.pid)]);
  return below(ancestor).filter(
    ({ command }) => command.includes("--remote-debugging-pipe") || command.includes("--type="),
  );
}

const browsers = (ancestor = process.pid) =>
  browserProcesses(ancestor).filter(({ command }) => !command.includes("--type="));
const renderers = () => browserProcesses(process.pid).filter(({ command }) => command.includes("--type=renderer"));

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await delay(20);
}

/** Resolves when `path` was asked for after the first `before` requests. */
async function asked(path: string, before: number): Promise<void> {
  for (let next = before + 1; (await origin.request(next)).path !== path; next += 1);
}

describe("a browser that ends", () => {
  it.each([
    ["page's process", renderers],
    ["browser", browsers],
  ] as const)("J4 a crash of the %s is a fault of its attempt, and the next job is served", async (_what, find) => {
    await using rig = await openRenderRig(origin);
    const before = origin.requests.length;
    const rendering = rig.render(`${BASE}wait`);
    const ended = rendering.then(
      () => "an outcome",
      (error: unknown) => error,
    );
    await asked("/held", before);
    for (const { pid } of find()) process.kill(pid, "SIGKILL");
    expect(await ended).toBeInstanceOf(BrowserCrashed);
    await origin.allClosed();
    expect((await rig.render(BASE)).outcome.ok).toBe(true);
  });

  it("leaves no process behind when the transport is closed, while a page is rendered or not", async () => {
    const rig = await openRenderRig(origin);
    const before = origin.requests.length;
    const rendering = rig.render(`${BASE}wait`);
    await asked("/held", before);
    await rig.transport.close(performance.now());
    await until(() => browserProcesses(process.pid).length === 0);
    expect((await rendering).outcome).toMatchObject({ ok: false, aborted: true });
    expect(rig.transport.sockets()).toBe(0);
    expect((await rig.render(BASE)).outcome).toMatchObject({ ok: false, aborted: true, sent: false });
    expect(browserProcesses(process.pid)).toEqual([]);
  });

  it("leaves no process behind when its worker is killed", async () => {
    const before = origin.requests.length;
    const script = new URL("./render-child.ts", import.meta.url).pathname;
    const child = spawn(
      process.execPath,
      ["--conditions=@keble-scraper/source", "--import", "tsx", script, String(origin.port)],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    await asked("/held", before);
    const running = browserProcesses(child.pid!);
    expect(running.length).toBeGreaterThan(2);
    child.kill("SIGKILL");
    const isAlive = (pid: number): boolean => {
      try {
        return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
      } catch {
        return false;
      }
    };
    await until(() => !running.some(({ pid }) => isAlive(pid)));
  });
});

describe("a browser that did what it may", () => {
  const renderOne = async (rig: RenderRig): Promise<void> => {
    expect((await rig.render(BASE)).outcome.ok).toBe(true);
  };
  const isGone = (pid: number | undefined) => until(() => !browsers().some((one) => one.pid === pid));

  it("is replaced after its jobs, and not before", async () => {
    await using rig = await openRenderRig(origin, { jobsMax: 2 });
    await renderOne(rig);
    const [first] = browsers();
    expect(first).toBeDefined();
    await renderOne(rig);
    await isGone(first?.pid);
    expect(browsers()).toEqual([]);
    await renderOne(rig);
    expect(browsers().length).toBe(1);
  });

  it("is replaced when it holds more memory than it may, and not before", async () => {
    {
      await using rig = await openRenderRig(origin, { memoryBytesMax: 1 });
      await renderOne(rig);
      await until(() => browsers().length === 0);
    }
    await using rig = await openRenderRig(origin);
    await renderOne(rig);
    const [first] = browsers();
    await renderOne(rig);
    expect(browsers().map(({ pid }) => pid)).toEqual([first?.pid]);
  });

  it("serves its running jobs to their end, while new ones go to a fresh one", async () => {
    const over = createGate();
    origin.on("/late", async (reply) => {
      await over.opened;
      await reply.send({ headers: { "Content-Type": "image/png" }, body: "" });
    });
    origin.on("/slow", page("<p>slow<img src=/late>", HTML));
    await using rig = await openRenderRig(origin, { jobsMax: 1 });
    const before = origin.requests.length;
    const slow = rig.render(`${BASE}slow`);
    await asked("/late", before);
    expect((await rig.render(BASE)).outcome.ok).toBe(true);
    over.open();
    expect((await slow).outcome.ok).toBe(true);
    await until(() => browsers().length === 0);
  });
});
