import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, describe, expect, test } from "vitest";
import { findFreePort, type RunningServer, startRedis } from "@keble-scraper/local-servers";
import { startTcpProxy } from "@keble-scraper/testkit";
import {
  type Bell,
  type BellListener,
  createBell,
  createBellListener,
  createHints,
  createLogger,
} from "../src/index.ts";

const logger = createLogger({ name: "test", level: "silent" });
const PREFIX = "{test}";
const cleanups: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) {
    await cleanup();
  }
});

/** A Redis on a port that it can be started on again. */
async function ownRedis(): Promise<{ readonly url: string; start(): Promise<RunningServer>; kill(): Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), "keble-bell-"));
  const port = await findFreePort();
  let server: RunningServer | undefined;
  cleanups.push(async () => {
    await server?.stop();
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    async start() {
      server = await startRedis({
        path: process.env["PATH"] ?? "/usr/bin",
        directory,
        port,
        logFile: join(directory, "redis.log"),
      });
      return server;
    },
    async kill() {
      if (server) {
        process.kill(server.pid, "SIGKILL");
        await server.exited;
        await server.stop();
      }
    },
  };
}

/** Counts rings and lets a test wait for the next one. */
function createEar() {
  let rings = 0;
  const waiters: (() => void)[] = [];
  return {
    onRing(): void {
      rings += 1;
      for (const wake of waiters.splice(0)) {
        wake();
      }
    },
    get rings() {
      return rings;
    },
    next: () =>
      new Promise<void>((resolve) => {
        waiters.push(resolve);
      }),
  };
}

/** What links log of themselves: the names of the lines in order, and a wait for one. */
function createChangeLog() {
  const lines: { readonly link?: string; readonly msg: string }[] = [];
  const waiters = new Set<() => void>();
  const write = (line: string): void => {
    lines.push(JSON.parse(line) as { link?: string; msg: string });
    for (const look of waiters) look();
  };
  return {
    log: createLogger({ name: "test", level: "info", destination: { write } }),
    get changes() {
      return lines.map(({ msg }) => msg);
    },
    /** Resolves when each of the links has logged the change, also when it had before this call. */
    logged: (change: string, ...links: readonly string[]) =>
      new Promise<void>((resolve) => {
        const look = (): void => {
          if (!links.every((name) => lines.some(({ link, msg }) => link === name && msg === change))) return;
          waiters.delete(look);
          resolve();
        };
        waiters.add(look);
        look();
      }),
  };
}

/** The names that the two sides of the bell log under. */
const BELL = "bell";
const LISTENER = "bell-listener-fetch";

const never = new AbortController().signal;

async function startBell(url: string, log = logger): Promise<Bell> {
  const bell = createBell({ redisUrl: url, prefix: PREFIX, logger: log });
  cleanups.push(() => bell.stop(performance.now()));
  await bell.start(never);
  return bell;
}

async function startListener(url: string, onRing: () => void, canaryMs?: number, log = logger): Promise<BellListener> {
  const listener = createBellListener({
    redisUrl: url,
    prefix: PREFIX,
    kind: "fetch",
    onRing,
    logger: log,
    ...(canaryMs === undefined ? {} : { canaryMs }),
  });
  cleanups.push(() => listener.stop(performance.now()));
  await listener.start(never);
  return listener;
}

async function command(url: string, ...args: readonly [string, ...string[]]): Promise<unknown> {
  const redis = new Redis(url, { maxRetriesPerRequest: 0 });
  try {
    return await redis.call(...args);
  } finally {
    redis.disconnect();
  }
}

/** Rings once, with both sides connected, and waits until it is heard. Answers the milliseconds it took. */
async function ring(bell: Bell, ear: ReturnType<typeof createEar>): Promise<number> {
  const startedAt = performance.now();
  const heard = ear.next();
  bell.ring("fetch", {});
  await heard;
  return performance.now() - startedAt;
}

describe("the bell", () => {
  test("a ring is heard within a poll's fraction, and nothing is left in Redis", async () => {
    const redis = await ownRedis();
    await redis.start();
    const ear = createEar();
    const bell = await startBell(redis.url);
    await startListener(redis.url, ear.onRing);
    expect(await ring(bell, ear)).toBeLessThan(1_000);
    expect(await bell.check.check()).toBe("ok");
    expect(await bell.waiting("fetch")).toBe(0);
    await expect
      .poll(() => command(redis.url, "KEYS", `${PREFIX}*`))
      .toEqual(expect.not.arrayContaining([`${PREFIX}:fetch:jobs`, `${PREFIX}:fetch:active`]));
  });

  test("rings within a window become one, and the last of them is never lost", async () => {
    const redis = await ownRedis();
    await redis.start();
    const bell = await startBell(redis.url);
    for (let each = 0; each < 1_000; each += 1) {
      bell.ring("callbacks", { eventId: `${each}` });
    }
    await expect.poll(() => bell.waiting("callbacks")).toBe(2);
    const jobs = (await command(redis.url, "HVALS", `${PREFIX}:callbacks:jobs`)) as string[];
    expect(jobs.map((job) => (JSON.parse(job) as { data: { eventId: string } }).data.eventId)).toContain("999");
  });

  test("a ring just before stop is still rung", async () => {
    const redis = await ownRedis();
    await redis.start();
    const bell = await startBell(redis.url);
    bell.ring("render", {});
    bell.ring("render", {});
    await bell.stop(performance.now() + 1_000);
    expect(await command(redis.url, "LLEN", `${PREFIX}:render:waiting`)).toBe(2);
  });

  test("J8 no bell is rung while more than 1,000 entries wait", async () => {
    const redis = await ownRedis();
    await redis.start();
    const bell = await startBell(redis.url);
    const taken = await Promise.all(Array.from({ length: 1_200 }, () => bell.publish("fetch", {})));
    expect(taken.filter(Boolean).length).toBeGreaterThan(1_000);
    const waiting = await bell.waiting("fetch");
    expect(await bell.publish("fetch", {})).toBe(false);
    expect(await bell.waiting("fetch")).toBe(waiting);
    await command(redis.url, "DEL", `${PREFIX}:fetch:waiting`);
    expect(await bell.publish("fetch", {})).toBe(true);
  });

  test("Redis killed and started empty: rings are heard again within 15 s, with no restart of ours", async () => {
    const redis = await ownRedis();
    await redis.start();
    const ear = createEar();
    const { log, logged } = createChangeLog();
    const bell = await startBell(redis.url, log);
    const listener = await startListener(redis.url, ear.onRing, undefined, log);
    await ring(bell, ear);
    await redis.kill();
    await logged("link.lost", BELL, LISTENER);
    expect(await bell.check.check()).toBe("degraded");
    expect(await listener.check.check()).toBe("degraded");
    const before = performance.now();
    for (let each = 0; each < 10_000; each += 1) {
      bell.ring("fetch", {});
    }
    expect(performance.now() - before).toBeLessThan(100);
    await redis.start();
    const startedAt = performance.now();
    await logged("link.recovered", BELL, LISTENER);
    await ring(bell, ear);
    expect(performance.now() - startedAt).toBeLessThan(15_000);
    expect(await bell.check.check()).toBe("ok");
  });

  test("Redis away at the start: everything starts, and is heard when Redis comes", async () => {
    const redis = await ownRedis();
    const ear = createEar();
    const { log, logged } = createChangeLog();
    const bell = await startBell(redis.url, log);
    const listener = await startListener(redis.url, ear.onRing, undefined, log);
    expect(await bell.check.check()).toBe("degraded");
    expect(await listener.check.check()).toBe("degraded");
    expect(await bell.waiting("fetch")).toBeNull();
    expect(await bell.publish("fetch", {})).toBe(false);
    await redis.start();
    await logged("link.recovered", BELL, LISTENER);
    await ring(bell, ear);
  });

  test("a ring while Redis is away is rung once when it is back", async () => {
    const redis = await ownRedis();
    const bell = await startBell(redis.url);
    bell.ring("callbacks", { eventId: "first" });
    bell.ring("callbacks", { eventId: "last" });
    await redis.start();
    await expect.poll(() => bell.waiting("callbacks"), { timeout: 15_000 }).toBe(1);
    const [job] = (await command(redis.url, "HVALS", `${PREFIX}:callbacks:jobs`)) as string[];
    expect(JSON.parse(String(job))).toMatchObject({ data: { eventId: "last" } });
  });

  test.each(["FLUSHALL", "SCRIPT FLUSH"])("%s harms no later ring", async (flush) => {
    const redis = await ownRedis();
    await redis.start();
    const ear = createEar();
    const bell = await startBell(redis.url);
    await startListener(redis.url, ear.onRing);
    await ring(bell, ear);
    await command(redis.url, ...(flush.split(" ") as [string, ...string[]]));
    expect(await ring(bell, ear)).toBeLessThan(5_000);
    expect(await ring(bell, ear)).toBeLessThan(1_000);
  });

  test("a silent connection is noticed by its canary and replaced", async () => {
    const redis = await ownRedis();
    await redis.start();
    await using proxy = await startTcpProxy({ target: redis.url });
    const ear = createEar();
    const bell = await startBell(redis.url);
    const heard = createChangeLog();
    await startListener(proxy.through(redis.url), ear.onRing, 200, heard.log);
    await ring(bell, ear);
    proxy.blackHole();
    await heard.logged("link.lost", LISTENER);
    await proxy.restore();
    await heard.logged("link.recovered", LISTENER);
    await ring(bell, ear);
    expect(heard.changes).toEqual(["link.probe_missed", "link.probe_missed", "link.lost", "link.recovered"]);
  });

  // A connection that Redis serves and nobody reads looks healthy from both ends; only the unheard canary tells.
  test("a listener that does not hear its own canaries is replaced", async () => {
    const redis = await ownRedis();
    await redis.start();
    const thieves = Array.from({ length: 8 }, () => new Redis(redis.url));
    cleanups.push(() => {
      for (const thief of thieves) {
        thief.disconnect();
      }
    });
    for (const thief of thieves) {
      void (async () => {
        for (;;) {
          await thief.blpop(`${PREFIX}:fetch:waiting`, 0);
        }
      })().catch(() => undefined);
    }
    const heard = createChangeLog();
    await startListener(redis.url, () => undefined, 50, heard.log);
    await heard.logged("link.recovered", LISTENER);
    expect(heard.changes.slice(0, 3)).toEqual(["link.probe_missed", "link.probe_missed", "link.lost"]);
  });

  test("listeners of one kind each hear a canary, so none is replaced in peace", async () => {
    const redis = await ownRedis();
    await redis.start();
    const ears = [createEar(), createEar(), createEar()];
    const listeners: BellListener[] = [];
    for (const ear of ears) {
      listeners.push(await startListener(redis.url, ear.onRing, 100));
    }
    const figure = async (section: string, name: string) =>
      Number(new RegExp(`${name}(\\d+)`, "u").exec(String(await command(redis.url, "INFO", section)))?.[1] ?? 0);
    const before = await figure("stats", "total_connections_received:");
    let looks = 0;
    await expect
      .poll(
        () => {
          looks += 1;
          return figure("commandstats", "cmdstat_brpoplpush:calls=");
        },
        { timeout: 10_000 },
      )
      .toBeGreaterThan(36);
    expect(await figure("stats", "total_connections_received:")).toBe(before + looks + 1);
    // A canary is for the listener's own ears; each heard one ring, when it came up.
    expect(ears.map((ear) => ear.rings)).toEqual([1, 1, 1]);
    for (const listener of listeners) {
      expect(await listener.check.check()).toBe("ok");
    }
  });

  test("an evicting Redis degrades and is no reason to refuse", async () => {
    const redis = await ownRedis();
    await redis.start();
    await command(redis.url, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    const bell = await startBell(redis.url);
    await expect.poll(() => bell.check.check()).toBe("degraded");
    expect(await bell.publish("fetch", {})).toBe(true);
  });

  test("a full Redis refuses rings and keeps its connection", async () => {
    const redis = await ownRedis();
    await redis.start();
    const bell = await startBell(redis.url);
    expect(await bell.publish("fetch", {})).toBe(true);
    await command(redis.url, "CONFIG", "SET", "maxmemory", "1");
    expect(await bell.publish("fetch", {})).toBe(false);
    expect(await bell.check.check()).toBe("ok");
    await command(redis.url, "CONFIG", "SET", "maxmemory", "0");
    expect(await bell.publish("fetch", {})).toBe(true);
  });

  test("stop ends every connection within a second, Redis there or not", async () => {
    const redis = await ownRedis();
    await redis.start();
    const bell = await startBell(redis.url);
    const listener = await startListener(redis.url, () => undefined);
    const startedAt = performance.now();
    await bell.stop(performance.now() + 10_000);
    await listener.stop(performance.now() + 10_000);
    expect(performance.now() - startedAt).toBeLessThan(1_500);
    const clients = String(await command(redis.url, "CLIENT", "LIST"))
      .trim()
      .split("\n");
    expect(clients).toHaveLength(1);
    const second = await startBell(redis.url);
    await redis.kill();
    const killedAt = performance.now();
    await second.stop(performance.now() + 10_000);
    expect(performance.now() - killedAt).toBeLessThan(1_500);
  });
});

describe("hints", () => {
  async function startHints(url: string) {
    const hints = createHints({ redisUrl: url, prefix: PREFIX, logger });
    cleanups.push(() => hints.stop(performance.now()));
    await hints.start(never);
    return hints;
  }

  async function publishUntilHeard(
    publisher: ReturnType<typeof createHints>,
    heard: readonly (readonly string[])[],
    withinMs: number,
  ): Promise<void> {
    const before = heard.length;
    await expect
      .poll(
        () => {
          publisher.publish("ended", ["a", "b"]);
          return heard.length;
        },
        { timeout: withinMs, interval: 50 },
      )
      .toBeGreaterThan(before);
  }

  test("reach subscribers in other processes, until they unsubscribe", async () => {
    const redis = await ownRedis();
    await redis.start();
    const [publisher, subscriber] = [await startHints(redis.url), await startHints(redis.url)];
    const heard: (readonly string[])[] = [];
    const others: (readonly string[])[] = [];
    const end = subscriber.subscribe("ended", (ids) => void heard.push(ids));
    subscriber.subscribe("cancelled", (ids) => void others.push(ids));
    await publishUntilHeard(publisher, heard, 5_000);
    expect(heard[0]).toEqual(["a", "b"]);
    expect(others).toEqual([]);
    end();
    await expect
      .poll(() => command(redis.url, "PUBSUB", "NUMSUB", `${PREFIX}:hints:ended`))
      .toEqual([`${PREFIX}:hints:ended`, 0]);
  });

  test("what is not a list of ids is dropped, and a handler that throws harms no other", async () => {
    const redis = await ownRedis();
    await redis.start();
    const hints = await startHints(redis.url);
    const heard: (readonly string[])[] = [];
    hints.subscribe("ended", () => {
      throw new Error("no");
    });
    hints.subscribe("ended", (ids) => void heard.push(ids));
    await expect.poll(() => command(redis.url, "PUBLISH", `${PREFIX}:hints:ended`, "not json")).toBe(1);
    for (const message of ['{"a":1}', "[1]", "null", `["${"x".repeat(200_000)}"]`]) {
      await command(redis.url, "PUBLISH", `${PREFIX}:hints:ended`, message);
    }
    await publishUntilHeard(hints, heard, 5_000);
    expect(new Set(heard.map((ids) => ids.join()))).toEqual(new Set(["a,b"]));
  });

  test("Redis killed and started again: subscriptions come back; publishing meanwhile neither throws nor waits", async () => {
    const redis = await ownRedis();
    const hints = await startHints(redis.url);
    const heard: (readonly string[])[] = [];
    hints.subscribe("ended", (ids) => void heard.push(ids));
    expect(await hints.check.check()).toBe("degraded");
    await redis.start();
    await publishUntilHeard(hints, heard, 10_000);
    await redis.kill();
    const before = performance.now();
    for (let each = 0; each < 10_000; each += 1) {
      hints.publish("ended", ["x"]);
    }
    expect(performance.now() - before).toBeLessThan(200);
    await expect.poll(() => hints.check.check()).toBe("degraded");
    await redis.start();
    await publishUntilHeard(hints, heard, 10_000);
    expect(await hints.check.check()).toBe("ok");
  });
});
