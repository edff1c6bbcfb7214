import type { HopVerdict } from "@keble-scraper/egress";
import { createLogger, SYSTEM_CLOCK } from "@keble-scraper/service";
import { testRedis } from "@keble-scraper/testkit";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Admission, type AdmissionParts, createAdmission } from "../src/admission/admission.ts";
import { EARLY_MS } from "../src/admission/admission-key.ts";
import { type Clocks, createClocks, type Turn } from "../src/admission/clocks.ts";
import { createRedisScripts, type RedisScripts } from "../src/admission/redis-scripts.ts";
import { createSlots, type Slots } from "../src/admission/slots.ts";
import { hopTo, jobOf, peakOf } from "./admission-hops.ts";

const logger = createLogger({ name: "t", level: "silent" });
const WAIT_MS = 5_000;
/** 50 requests a second: their turns are 10 % wider apart, and they are let go 6 % wider apart. */
const FIFTY_MS = 22;
const FIFTY_PACE_MS = 21.2;
const FIFTY = { key: "route:DIRECT", intervalMs: FIFTY_MS, patienceMs: WAIT_MS, bookedAtMs: null } as const;

const FAR = { ...FIFTY, patienceMs: 60_000 };

let redis: { url: string; prefix: string };
let plain: Redis;
let closers: (() => unknown)[];

beforeEach(async () => {
  const { url, prefix } = await testRedis();
  redis = { url, prefix: `{${prefix.replaceAll(":", "")}}` };
  plain = new Redis(url);
  closers = [];
});
afterEach(async () => {
  await Promise.all(closers.map((close) => close()));
  const keys = await plain.keys(`${redis.prefix}*`);
  if (keys.length > 0) await plain.del(keys);
  plain.disconnect();
});

const mustNotAsk = () => Promise.reject(new Error("Redis is there: Postgres is not asked"));

async function openScripts(): Promise<RedisScripts> {
  const scripts = createRedisScripts({ redisUrl: redis.url, logger });
  await scripts.start(new AbortController().signal);
  closers.push(() => scripts.stop(0));
  return scripts;
}

async function openClocks(): Promise<Clocks> {
  const scripts = await openScripts();
  return createClocks({
    redis: scripts,
    prefix: redis.prefix,
    takeInSql: mustNotAsk,
    voidMs: WAIT_MS,
    clock: SYSTEM_CLOCK,
  });
}

async function openSlots(leaseMs = 60_000): Promise<Slots> {
  const scripts = await openScripts();
  return createSlots({
    redis: scripts,
    prefix: redis.prefix,
    leaseMs,
    countRunningBefore: mustNotAsk,
    takePaces: mustNotAsk,
  });
}

async function openAdmission(more: Partial<AdmissionParts> = {}): Promise<Admission> {
  const admission = createAdmission({
    redis: { redisUrl: redis.url, prefix: redis.prefix, logger },
    sql: {
      takeAdmission: mustNotAsk,
      takePaces: mustNotAsk,
      countRunningBefore: mustNotAsk,
      countWaitingJobs: () => Promise.resolve(0),
      listHostHolds: () => Promise.resolve(new Map()),
      isOutage: () => false,
    },
    settings: {
      waitMs: WAIT_MS,
      hostRequestsPerSecond: 1_000,
      hostConcurrency: 1_000,
      isForAllowed: false,
      stickySessionMs: 60_000,
    },
    routes: {},
    slots: 400,
    leaseMs: 60_000,
    ...more,
  });
  await admission.component.start(new AbortController().signal);
  closers.push(() => admission.component.stop(0));
  return admission;
}

function listGaps(turns: readonly { readonly atMs: number }[]): number[] {
  const times = turns.map(({ atMs }) => atMs).toSorted((one, other) => one - other);
  return times.slice(1).map((atMs, index) => atMs - times[index]!);
}

describe("clocks in Redis", () => {
  it("W1 four workers book one time each 22 ms, 46 in no second, and what is refused moves no clock", async () => {
    const clocks = await Promise.all(Array.from({ length: 4 }, openClocks));
    const turns = await Promise.all(
      Array.from({ length: 400 }, (_, index) => clocks[index % 4]!.take({ ...FIFTY, patienceMs: 2_000 })),
    );
    const booked = turns.filter(({ isBooked }) => isBooked);
    const refused = turns.filter(({ isBooked }) => !isBooked);
    expect(booked.length).toBeGreaterThanOrEqual(91);
    expect(Math.min(...listGaps(booked))).toBeGreaterThan(FIFTY_MS - 0.01);
    expect(peakOf(booked.map(({ atMs }) => atMs))).toBeLessThanOrEqual(46);
    // Each refused call saw a horizon that only bookings have moved.
    const endMs = Math.max(...booked.map(({ atMs }) => atMs)) + FIFTY_MS;
    expect(refused.length).toBeGreaterThan(200);
    expect(Math.max(...refused.map(({ atMs }) => atMs))).toBeLessThan(endMs + 0.01);
    const next = await clocks[0]!.take(FIFTY);
    expect(next.atMs).toBeCloseTo(endMs, 1);
  });

  it("W1 a booked time is used as it is until the longest wait after it, and is void then", async () => {
    const clocks = await openClocks();
    const first = await clocks.take(FIFTY);
    const carried = await clocks.take({ ...FIFTY, bookedAtMs: first.nowMs - WAIT_MS + 100 });
    expect(carried).toMatchObject({ isBooked: true, atMs: first.nowMs - WAIT_MS + 100 });
    const ahead = await clocks.take({ ...FIFTY, patienceMs: 0, bookedAtMs: first.nowMs + 3_000 });
    expect(ahead).toMatchObject({ isBooked: true, atMs: first.nowMs + 3_000 });
    // Neither of them booked anything.
    const second = await clocks.take(FIFTY);
    expect(second.atMs).toBeCloseTo(Math.max(first.atMs + FIFTY_MS, second.nowMs), 1);
    const isVoid = await clocks.take({ ...FIFTY, bookedAtMs: first.nowMs - WAIT_MS - 1 });
    expect(isVoid.atMs).toBeGreaterThan(second.atMs);
    const isAbsurd = await clocks.take({ ...FIFTY, bookedAtMs: first.nowMs + 10 * WAIT_MS });
    expect(isAbsurd.atMs).toBeLessThan(first.nowMs + WAIT_MS);
  });

  it("W1 with no patience only what may go now is booked", async () => {
    const clocks = await openClocks();
    const slow = { ...FIFTY, intervalMs: 60_000, patienceMs: 0 };
    expect((await clocks.take(slow)).isBooked).toBe(true);
    const refused = await clocks.take(slow);
    expect(refused.isBooked).toBe(false);
    expect(refused.atMs - refused.nowMs).toBeGreaterThan(50_000);
  });

  it("W1 clocks expire by themselves, all in one slot of a cluster", async () => {
    const clocks = await openClocks();
    await clocks.take({ ...FIFTY, intervalMs: 1_000 });
    const key = `${redis.prefix}:admission:clock:route:DIRECT`;
    const ttlMs = await plain.pttl(key);
    expect(ttlMs).toBeGreaterThan(10_000);
    expect(ttlMs).toBeLessThanOrEqual(11_001);
  });

  it("W1 after a flush workers go on behind everything that is booked: at most one extra burst, of who saw no clock", async () => {
    const clocks = await Promise.all(Array.from({ length: 4 }, openClocks));
    const take = (count: number): Promise<Turn[]> =>
      Promise.all(Array.from({ length: count }, (_, index) => clocks[index % 4]!.take(FAR)));
    // Each worker books a whole batch at once, which the others have not seen when the clock is lost.
    const before = await take(80);
    await plain.del(`${redis.prefix}:admission:clock:route:DIRECT`);
    const stranger = await (await openClocks()).take(FIFTY);
    const after = await take(80);
    expect(stranger.atMs).toBe(stranger.nowMs);
    expect(Math.min(...listGaps([...before, ...after]))).toBeGreaterThan(FIFTY_MS - 0.01);
    expect(peakOf([...before, ...after, stranger].map(({ atMs }) => atMs))).toBeLessThanOrEqual(50);
    expect(Math.max(...after.map(({ atMs }) => atMs)) - stranger.nowMs).toBeLessThan(WAIT_MS + 81 * FIFTY_MS);
  });

  it("W1 a clock that hardly anybody waits for goes on at once after a flush", async () => {
    const clocks = await openClocks();
    await clocks.take(FIFTY);
    await plain.del(`${redis.prefix}:admission:clock:route:DIRECT`);
    const turn = await clocks.take(FIFTY);
    expect(turn.atMs - turn.nowMs).toBeLessThan(250 + FIFTY_MS);
  });

  it("a Redis that forgot its scripts is told them again", async () => {
    const clocks = await openClocks();
    await clocks.take(FIFTY);
    await plain.script("FLUSH");
    expect((await clocks.take(FIFTY)).isBooked).toBe(true);
  });
});

describe("admission with Redis", () => {
  it("W1 four workers on a route of 50 a second send none before its time, and all of them", async () => {
    const routes = { DIRECT: { requestsPerSecond: 50, concurrency: null } };
    const workers = await Promise.all(Array.from({ length: 4 }, () => openAdmission({ routes })));
    const hops = Array.from({ length: 80 }, (_, index) =>
      hopTo("http://127.0.0.1:8080/", { isFirst: index % 8 !== 0 }),
    );
    const startedMs = performance.now();
    const sentMs = await Promise.all(
      hops.map(async (hop, index) => {
        const job = jobOf({ hostKey: "127.0.0.1:8080" });
        const verdict = await workers[index % 4]!.forJob(job, 60_000).admit(hop);
        expect(verdict.kind).toBe("GO");
        return performance.now() - startedMs;
      }),
    );
    const inTurn = sentMs.toSorted((one, other) => one - other);
    for (const [index, ms] of inTurn.entries()) expect(ms).toBeGreaterThan(index * FIFTY_MS - 2);
    expect(inTurn.at(-1)).toBeLessThan(80 * FIFTY_MS + 5_000);
  });

  it("W1 requests that wake late for their turns never bunch, over workers, and catch up", async () => {
    const routes = { DIRECT: { requestsPerSecond: 50, concurrency: null } };
    const workers = await Promise.all(Array.from({ length: 4 }, () => openAdmission({ routes })));
    const startedMs = performance.now();
    // Every worker slept through the turns of all its jobs.
    const sentMs = await Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        const routeAtMs = Date.now() - 500 + index;
        const booking = { hostKey: null, hostAtMs: null, route: "DIRECT", routeAtMs };
        const job = jobOf({ hostKey: "127.0.0.1:8080", booking });
        const verdict = await workers[index % 4]!.forJob(job, 60_000).admit(hopTo("http://127.0.0.1:8080/"));
        expect(verdict.kind).toBe("GO");
        return performance.now() - startedMs;
      }),
    );
    const inTurn = sentMs.toSorted((one, other) => one - other);
    for (const [index, ms] of inTurn.entries()) expect(ms).toBeGreaterThan(index * FIFTY_PACE_MS - EARLY_MS - 2);
    // Whoever is late waits for the pace alone, not for a turn in a queue that grows.
    expect(inTurn.at(-1)).toBeLessThan(59 * FIFTY_MS + 5_000);
    expect(await plain.exists(`${redis.prefix}:admission:slots:route:DIRECT`)).toBe(0);
  });

  it("W2 where nothing limits Redis is not asked", async () => {
    const worker = await openAdmission();
    const monitor = await plain.duplicate().monitor();
    closers.push(() => {
      monitor.disconnect();
    });
    const seen: string[] = [];
    monitor.on("monitor", (_time: string, args: string[]) => seen.push(args.join(" ")));
    for (let count = 0; count < 5; count += 1) {
      const job = jobOf({ hostKey: "127.0.0.1:8080" });
      expect((await worker.forJob(job, 60_000).admit(hopTo("http://127.0.0.1:8080/"))).kind).toBe("GO");
    }
    await worker.forJob(jobOf(), 60_000).admit(hopTo("http://a.example.com/"));
    const ours = () => seen.filter((line) => line.includes(redis.prefix) && line.startsWith("eval"));
    await expect.poll(() => ours().some((line) => line.includes(":admission:pace:host:a.example.com"))).toBe(true);
    expect(ours().filter((line) => line.includes("127.0.0.1:8080") || line.includes("route:"))).toEqual([]);
  });

  it("W2 thirty requests for a host of one a second delay no other host, nor the route", async () => {
    const routes = { DIRECT: { requestsPerSecond: 50, concurrency: null } };
    const settings = { waitMs: WAIT_MS, hostConcurrency: 4, isForAllowed: false, stickySessionMs: 1 };
    const worker = await openAdmission({ routes, settings: { ...settings, hostRequestsPerSecond: 1 } });
    const hops = Array.from({ length: 30 }, () => hopTo("http://slow.example.com/"));
    const slow = hops.map((hop) => worker.forJob(jobOf({ hostKey: "slow.example.com" }), 60_000).admit(hop));
    expect((await Promise.all(slow.slice(0, 1)))[0]?.kind).toBe("GO");
    const startedMs = performance.now();
    const other = worker.forJob(jobOf({ hostKey: "other.example.com" }), 60_000);
    expect((await other.admit(hopTo("http://other.example.com/"))).kind).toBe("GO");
    // Behind one of the slow host's it would have waited for a second at least.
    expect(performance.now() - startedMs).toBeLessThan(1_000);
    // Two have asked the route for its time: the one that went, and the other host's.
    const route = Number(await plain.get(`${redis.prefix}:admission:clock:route:DIRECT`)) / 1_000;
    expect(route - Date.now()).toBeLessThan(2 * FIFTY_MS + 5);
    for (const hop of hops) hop.stopNow();
    const kinds = (await Promise.all(slow)).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === "WAIT").length).toBeGreaterThanOrEqual(24);
  });

  it("W2 never more than the slots of a host are out at once, over workers, and all get their turn", async () => {
    const settings = { waitMs: WAIT_MS, hostRequestsPerSecond: 1_000, isForAllowed: false, stickySessionMs: 1 };
    const workers = await Promise.all(
      [1, 2].map(() => openAdmission({ settings: { ...settings, hostConcurrency: 2 } })),
    );
    let out = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 14 }, async (_, index) => {
        const verdict = await workers[index % 2]!.forJob(jobOf(), 60_000).admit(hopTo("http://a.example.com/"));
        if (verdict.kind !== "GO") throw new Error(verdict.kind);
        out += 1;
        most = Math.max(most, out);
        await plain.ping();
        out -= 1;
        verdict.done();
        verdict.done();
      }),
    );
    expect(most).toBe(2);
    expect(workers.map(({ state }) => state.held)).toEqual([0, 0]);
    await plain.ping();
    await expect.poll(() => plain.exists(`${redis.prefix}:admission:slots:host:a.example.com`)).toBe(0);
  });

  it("W2 what waits for a slot holds none: a full route keeps no slot of a host", async () => {
    const routes = { DIRECT: { requestsPerSecond: null, concurrency: 1 } };
    const worker = await openAdmission({ routes });
    const first = await worker.forJob(jobOf(), 60_000).admit(hopTo("http://a.example.com/"));
    const hop = hopTo("http://b.example.com/");
    const second = worker.forJob(jobOf({ hostKey: "b.example.com" }), 60_000).admit(hop);
    await expect.poll(() => worker.state.waiting).toBe(1);
    expect(await plain.exists(`${redis.prefix}:admission:slots:host:b.example.com`)).toBe(0);
    giveBack(first);
    giveBack(await second);
  });

  it("a stopped request has given its slots back and keeps its booked time", async () => {
    const worker = await openAdmission({ routes: { DIRECT: { requestsPerSecond: 1, concurrency: null } } });
    giveBack(await worker.forJob(jobOf(), 60_000).admit(hopTo("http://a.example.com/")));
    const hop = hopTo("http://a.example.com/");
    const attempt = worker.forJob(jobOf(), 60_000);
    const verdict = attempt.admit(hop);
    await expect.poll(() => attempt.booking()?.routeAtMs ?? null).not.toBeNull();
    hop.stopNow();
    expect((await verdict).kind).toBe("STOPPED");
    const again = worker.forJob(jobOf({ booking: attempt.booking() }), 60_000);
    expect((await again.admit(hopTo("http://a.example.com/"))).kind).toBe("GO");
    // The carried time was used: the clock stands one interval behind it, and not two.
    const aheadMs = Number(await plain.get(`${redis.prefix}:admission:clock:route:DIRECT`)) / 1_000 - Date.now();
    expect(aheadMs).toBeLessThan(1_105);
  });
});

describe("slots in Redis", () => {
  const ONE = [{ key: "route:DIRECT", slotsMax: 1, paceMs: null }] as const;
  const holder = (member: string) => ({ member, token: member, jobId: member });

  it("W2 a dead worker's slot comes back when its lease is over, not before", async () => {
    const two = [{ key: "route:DIRECT", slotsMax: 2, paceMs: null }] as const;
    const [dead, alive, other] = await Promise.all([openSlots(1_000), openSlots(), openSlots(1_000)]);
    const startedMs = performance.now();
    expect(await dead.take(holder("dead"), two)).toBeNull();
    expect(await alive.take(holder("alive"), two)).toBeNull();
    expect(await other.take(holder("other"), two)).toMatchObject({ limit: two[0] });
    await expect.poll(() => other.take(holder("other"), two), { interval: 20, timeout: 5_000 }).toBeNull();
    expect(performance.now() - startedMs).toBeGreaterThan(995);
  });

  it("W2 a renewal keeps the slots of the leases it names, and of no others", async () => {
    const slots = await openSlots(500);
    const two = [{ key: "route:DIRECT", slotsMax: 2, paceMs: null }] as const;
    await slots.take(holder("kept"), two);
    await slots.take(holder("lost"), two);
    const key = `${redis.prefix}:admission:slots:route:DIRECT`;
    const [keptBefore, lostBefore] = await Promise.all([plain.zscore(key, "kept"), plain.zscore(key, "lost")]);
    await expect
      .poll(async () => {
        slots.renew(["kept"]);
        return Number(await plain.zscore(key, "kept")) - Number(keptBefore);
      })
      .toBeGreaterThan(50);
    expect(await plain.zscore(key, "lost")).toBe(lostBefore);
  });

  it("a slot that nobody gave back is forgotten with its lease", async () => {
    const slots = await openSlots(100);
    await slots.take(holder("faulted"), ONE);
    await expect
      .poll(() => {
        slots.renew(["another"]);
        return slots.held;
      })
      .toBe(0);
  });

  it("W2 slots that Redis forgot are announced again by the next renewal", async () => {
    const slots = await openSlots();
    const other = await openSlots();
    await slots.take(holder("held"), ONE);
    await plain.del(`${redis.prefix}:admission:slots:route:DIRECT`);
    slots.renew(["held"]);
    await expect.poll(() => plain.zcard(`${redis.prefix}:admission:slots:route:DIRECT`)).toBe(1);
    expect(await other.take(holder("other"), ONE)).toMatchObject({ limit: ONE[0] });
  });

  it("W2 requests that waited long for a slot do not bunch when slots come free: the host's rate holds for them too", async () => {
    const slots = await Promise.all([openSlots(), openSlots()]);
    const paced = [{ key: "host:a.example.com", slotsMax: 4, paceMs: 60 }] as const;
    const takenMs: number[] = [];
    await Promise.all(
      Array.from({ length: 6 }, async (_, index) => {
        const mine = slots[index % 2]!;
        await expect.poll(() => mine.take(holder(`late-${index}`), paced), { interval: 3, timeout: 5_000 }).toBeNull();
        takenMs.push(performance.now());
        mine.give(holder(`late-${index}`));
      }),
    );
    expect(takenMs.at(-1)! - takenMs[0]!).toBeGreaterThan(5 * 60 - 15);
    const [one] = slots;
    expect((await one.take(holder("next"), paced))?.inMs).toBeGreaterThan(0);
  });

  it("W2 both paces are taken or none, and the longer wait is named", async () => {
    const slots = await openSlots();
    const host = { key: "host:a.example.com", slotsMax: null, paceMs: 500 } as const;
    const route = { key: "route:DIRECT", slotsMax: null, paceMs: 5_000 } as const;
    expect(await slots.take(holder("one"), [route])).toBeNull();
    const refused = await slots.take(holder("two"), [host, route]);
    expect(refused?.limit).toBe(route);
    expect(refused?.inMs).toBeGreaterThan(4_000);
    expect(refused?.inMs).toBeLessThanOrEqual(5_000 - EARLY_MS);
    expect(await slots.take(holder("two"), [host])).toBeNull();
    expect((await slots.take(holder("three"), [host, route]))?.limit).toBe(route);
    expect(slots.held).toBe(0);
  });

  it("W2 who asks again with its slot is held to the pace like everybody, and takes one slot", async () => {
    const slots = await openSlots();
    const paced = [{ key: "host:a.example.com", slotsMax: 1, paceMs: 1_000 }] as const;
    expect(await slots.take(holder("again"), paced)).toBeNull();
    expect((await slots.take(holder("again"), paced))?.inMs).toBeGreaterThan(500);
    await plain.del(`${redis.prefix}:admission:pace:host:a.example.com`);
    expect(await slots.take(holder("again"), paced)).toBeNull();
    expect(await plain.zcard(`${redis.prefix}:admission:slots:host:a.example.com`)).toBe(1);
  });

  it("W2 a pace finer than a millisecond is kept, and its key expires with it", async () => {
    const slots = await openSlots();
    const fine = [{ key: "route:DIRECT", slotsMax: null, paceMs: 1.06 }] as const;
    const startedMs = performance.now();
    const passed = await Promise.all(Array.from({ length: 200 }, (_, index) => slots.take(holder(`${index}`), fine)));
    const tookMs = performance.now() - startedMs;
    const gone = passed.filter((refusal) => refusal === null).length;
    expect(gone).toBeGreaterThanOrEqual(10);
    expect(gone).toBeLessThanOrEqual(1 + (tookMs + EARLY_MS) / 1.06);
    expect(await plain.pttl(`${redis.prefix}:admission:pace:route:DIRECT`)).toBeLessThanOrEqual(EARLY_MS + 2);
  });

  it("W2 both slots are taken or none", async () => {
    const slots = await openSlots();
    const both = [{ key: "host:a.example.com", slotsMax: 4, paceMs: null }, ...ONE] as const;
    await slots.take(holder("first"), ONE);
    expect(await slots.take(holder("second"), both)).toMatchObject({ limit: ONE[0] });
    expect(await plain.exists(`${redis.prefix}:admission:slots:host:a.example.com`)).toBe(0);
    expect(slots.held).toBe(1);
  });
});

function giveBack(verdict: HopVerdict): void {
  if (verdict.kind !== "GO") throw new Error(verdict.kind);
  verdict.done();
}
