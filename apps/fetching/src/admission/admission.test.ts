import type { Hop, HopVerdict } from "@keble-scraper/egress";
import { createLogger } from "@keble-scraper/service";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { hopTo, jobOf } from "../../test/admission-hops.ts";
import { type Admission, type AdmissionParts, type AdmittedJob, createAdmission } from "./admission.ts";
import { EARLY_MS } from "./admission-key.ts";
import type { ClockStep } from "./clocks.ts";

/** A worker's admission without Redis: the SQL steps are the test's own, on the fake clock. */
function openRig(
  options: { settings?: Partial<AdmissionParts["settings"]>; slots?: number; routes?: AdmissionParts["routes"] } = {},
) {
  const nextAtMs = new Map<string, number>();
  const gateAtMs = new Map<string, number>();
  const holds = new Map<string, number>();
  const sql = {
    steps: [] as ClockStep[],
    paces: [] as (readonly string[])[],
    looks: [] as (readonly string[])[],
    running: new Map<string, number>(),
    waiting: 0,
    counts: 0,
    outage: false,
  };
  const ask = <T>(answer: () => T): Promise<T> =>
    sql.outage ? Promise.reject(new Error("outage")) : Promise.resolve().then(answer);
  const admission = createAdmission({
    redis: { redisUrl: "redis://127.0.0.1:1", prefix: "{unit}", logger: createLogger({ name: "t", level: "silent" }) },
    sql: {
      takeAdmission: (step) =>
        ask(() => {
          sql.steps.push(step);
          const nowMs = performance.now();
          const { bookedAtMs } = step;
          if (bookedAtMs !== null && nowMs <= bookedAtMs + step.voidMs)
            return { nowMs, atMs: bookedAtMs, isBooked: true };
          const atMs = Math.max(nowMs, nextAtMs.get(step.key) ?? 0);
          const isBooked = atMs <= nowMs + step.patienceMs;
          if (isBooked) nextAtMs.set(step.key, atMs + step.intervalMs);
          return { nowMs, atMs, isBooked };
        }),
      takePaces: (limits) =>
        ask(() => {
          sql.paces.push(limits.map(({ key }) => key));
          const nowMs = performance.now();
          const refusals = limits.map(({ key }) => ({ key, inMs: (gateAtMs.get(key) ?? 0) - nowMs - EARLY_MS }));
          const [worst] = refusals.filter(({ inMs }) => inMs > 0).toSorted((one, other) => other.inMs - one.inMs);
          if (worst !== undefined) return worst;
          for (const { key, paceMs } of limits) gateAtMs.set(key, Math.max(nowMs, gateAtMs.get(key) ?? 0) + paceMs);
          return null;
        }),
      countRunningBefore: (key) => ask(() => sql.running.get(key) ?? 0),
      countWaitingJobs: () =>
        ask(() => {
          sql.counts += 1;
          return sql.waiting;
        }),
      listHostHolds: (hostKeys) =>
        ask(() => {
          sql.looks.push(hostKeys);
          return new Map([...holds].map(([host, untilMs]) => [host, untilMs - performance.now()]));
        }),
      isOutage: (error) => error instanceof Error && error.message === "outage",
    },
    settings: {
      waitMs: 5_000,
      hostRequestsPerSecond: 1,
      hostConcurrency: 4,
      isForAllowed: false,
      stickySessionMs: 1_000,
      ...options.settings,
    },
    routes: options.routes ?? {},
    slots: options.slots ?? 20,
    leaseMs: 60_000,
    random: () => 0.5,
  });
  return { admission, sql, holds, nextAtMs };
}

function admitOne(admission: Admission, more: Partial<AdmittedJob> = {}, hop: Hop = hopTo("http://a.example.com/")) {
  return admission.forJob(jobOf(more), 60_000).admit(hop);
}

function waitOf(verdict: HopVerdict) {
  if (verdict.kind !== "WAIT") throw new Error(`${verdict.kind} instead of WAIT`);
  return verdict.wait;
}

/** A turn of the host's that an earlier attempt booked. */
function bookedAt(hostAtMs: number): AdmittedJob["booking"] {
  return { hostKey: "a.example.com", hostAtMs, route: null, routeAtMs: null };
}

/** Lets time pass in small steps: looks at holds come in turns of the real event loop. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 10) {
    await vi.advanceTimersByTimeAsync(Math.min(left, 10));
    await nextTurn();
  }
}

const nextTurn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] });
  vi.setSystemTime(1_000_000);
});
afterEach(() => {
  expect(vi.getTimerCount(), "timers left").toBe(0);
  vi.useRealTimers();
});

describe("admission", () => {
  it("W1 a first request waits for its booked time and goes then, 10 % behind the one before", async () => {
    const { admission } = openRig();
    const first = await admitOne(admission);
    const startedMs = performance.now();
    const second = admitOne(admission);
    await vi.advanceTimersByTimeAsync(1_099);
    // A look at the host's hold would come in the next turn of the event loop.
    await nextTurn();
    expect(admission.state).toMatchObject({ waiting: 1, admitted: 1 });
    await vi.advanceTimersByTimeAsync(1);
    expect([first.kind, (await second).kind]).toEqual(["GO", "GO"]);
    expect(performance.now() - startedMs).toBe(1_100);
    expect(admission.state).toMatchObject({ waiting: 0, admitted: 2, waited: 1 });
  });

  it("W1 past the longest wait nothing is booked, and the job is due somewhere among those that wait", async () => {
    const { admission, sql, nextAtMs } = openRig();
    sql.waiting = 10;
    nextAtMs.set("host:a.example.com", performance.now() + 6_000);
    const wait = waitOf(await admitOne(admission));
    expect(wait.horizonMs).toBe(6_000);
    // Half of ten jobs at one request every 1,100 ms.
    expect(wait.dueMs).toBeCloseTo(6_000 + 0.5 * 10 * 1_100);
    expect(nextAtMs.get("host:a.example.com")).toBe(performance.now() + 6_000);
    expect(admission.state.waiting).toBe(0);
  });

  it("W1 jobs that wait are counted at most once a second for each host or route", async () => {
    const { admission, sql, nextAtMs } = openRig();
    nextAtMs.set("host:a.example.com", performance.now() + 60_000);
    await Promise.all(Array.from({ length: 5 }, () => admitOne(admission)));
    await vi.advanceTimersByTimeAsync(999);
    await admitOne(admission);
    expect(sql.counts).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    await admitOne(admission);
    expect(sql.counts).toBe(2);
  });

  it("W1 nothing is booked past the job's deadline, and the horizon says that it lies there", async () => {
    const { admission, nextAtMs } = openRig();
    nextAtMs.set("host:a.example.com", performance.now() + 3_000);
    const wait = waitOf(await admitOne(admission, { deadlineAtMs: performance.now() + 2_000 }));
    expect(wait.horizonMs).toBe(3_000);
    expect(nextAtMs.get("host:a.example.com")).toBe(performance.now() + 3_000);
  });

  it("W1 waiting jobs take at most half of the slots: one more is sent back at once and books nothing", async () => {
    const { admission, nextAtMs } = openRig({ slots: 5 });
    await admitOne(admission);
    const waiting = [admitOne(admission), admitOne(admission)];
    await vi.advanceTimersByTimeAsync(1);
    const booked = nextAtMs.get("host:a.example.com");
    const sentBack = waitOf(await admitOne(admission));
    expect(sentBack.horizonMs).toBeGreaterThan(3_000);
    expect(nextAtMs.get("host:a.example.com")).toBe(booked);
    // What may go at once still goes.
    expect((await admitOne(admission, { hostKey: "b.example.com" }, hopTo("http://b.example.com/"))).kind).toBe("GO");
    await pass(3_000);
    expect((await Promise.all(waiting)).map(({ kind }) => kind)).toEqual(["GO", "GO"]);
  });

  it("W1 a worker with one slot may wait in it", async () => {
    const { admission } = openRig({ slots: 1 });
    await admitOne(admission);
    const second = admitOne(admission);
    await vi.advanceTimersByTimeAsync(1_100);
    expect((await second).kind).toBe("GO");
  });

  it("W1 a booked time that was not used goes with the job, and is asked for again by the next attempt", async () => {
    const { admission, sql } = openRig();
    await admitOne(admission);
    const attempt = admission.forJob(jobOf(), 60_000);
    const hop = hopTo("http://a.example.com/");
    const verdict = attempt.admit(hop);
    await vi.advanceTimersByTimeAsync(10);
    hop.stopNow();
    expect((await verdict).kind).toBe("STOPPED");
    const booking = attempt.booking();
    const hostAtMs = performance.now() + 1_090;
    expect(booking).toEqual({ hostKey: "a.example.com", hostAtMs, route: null, routeAtMs: null });
    const again = admission.forJob(jobOf({ booking }), 60_000);
    const second = again.admit(hopTo("http://a.example.com/"));
    await vi.advanceTimersByTimeAsync(1_090);
    expect((await second).kind).toBe("GO");
    expect(sql.steps.at(-1)?.bookedAtMs).toBe(hostAtMs);
    expect(again.booking()).toBeNull();
    // The next request of the attempt takes a time of its own.
    const third = again.admit(hopTo("http://a.example.com/2", { isFirst: false }));
    await vi.advanceTimersByTimeAsync(0);
    expect(sql.steps.at(-1)?.bookedAtMs).toBeNull();
    await vi.advanceTimersByTimeAsync(1_100);
    expect((await third).kind).toBe("GO");
  });

  it("W1 a later request waits in place until its time comes within reach, while the attempt's limit allows", async () => {
    const { admission, nextAtMs } = openRig();
    nextAtMs.set("host:a.example.com", performance.now() + 12_000);
    const startedMs = performance.now();
    const later = admitOne(admission, {}, hopTo("http://a.example.com/", { isFirst: false }));
    await vi.advanceTimersByTimeAsync(12_000);
    expect((await later).kind).toBe("GO");
    expect(performance.now() - startedMs).toBe(12_000);
  });

  it("W1 a later request that could not go within the attempt's limit ends the attempt at once", async () => {
    const { admission, nextAtMs } = openRig();
    nextAtMs.set("host:a.example.com", performance.now() + 70_000);
    const verdict = await admitOne(admission, {}, hopTo("http://a.example.com/", { isFirst: false }));
    expect(waitOf(verdict).horizonMs).toBe(70_000);
  });

  it("W2 the host's time is waited for before the route is asked: a slow host never moves the route's clock", async () => {
    const { admission, sql, nextAtMs } = openRig({ routes: { DIRECT: { requestsPerSecond: 10, concurrency: null } } });
    nextAtMs.set("host:a.example.com", performance.now() + 60_000);
    await Promise.all(Array.from({ length: 10 }, () => admitOne(admission)));
    expect(sql.steps.filter(({ key }) => key === "route:DIRECT")).toEqual([]);
    expect((await admitOne(admission, { hostKey: "b.example.com" }, hopTo("http://b.example.com/"))).kind).toBe("GO");
    expect(sql.steps.map(({ key }) => key).slice(-2)).toEqual(["host:b.example.com", "route:DIRECT"]);
  });

  it("W2 a route whose queue is known to be too long takes no time of a host's", async () => {
    const { admission, sql, nextAtMs } = openRig({ routes: { DIRECT: { requestsPerSecond: 10, concurrency: null } } });
    nextAtMs.set("route:DIRECT", performance.now() + 9_000);
    expect(waitOf(await admitOne(admission)).horizonMs).toBe(9_000);
    const hop = hopTo("http://b.example.com/");
    const wait = waitOf(await admitOne(admission, { hostKey: "b.example.com" }, hop));
    expect([wait.horizonMs, sql.steps.length]).toEqual([9_000, 2]);
  });

  it("W2 a crawl-delay is its host's interval where it is the longer one", async () => {
    const { admission, sql } = openRig({ settings: { hostRequestsPerSecond: 5 } });
    await admitOne(admission, {}, hopTo("http://a.example.com/", { crawlDelayMs: 2_000 }));
    await admitOne(admission, { hostKey: "b.example.com" }, hopTo("http://b.example.com/", { crawlDelayMs: 10 }));
    expect(sql.steps.map(({ intervalMs }) => Math.round(intervalMs))).toEqual([2_200, 220]);
  });

  it("W2 an allowed target on a route without limits costs no step, no pace, no slot and no look", async () => {
    const { admission, sql } = openRig();
    const hop = hopTo("http://127.0.0.1:8080/");
    expect((await admitOne(admission, { hostKey: "127.0.0.1:8080" }, hop)).kind).toBe("GO");
    expect([sql.steps, sql.paces, sql.looks, admission.state.held]).toEqual([[], [], [], 0]);
    const strict = openRig({ settings: { isForAllowed: true } });
    await admitOne(strict.admission, { hostKey: "127.0.0.1:8080" }, hop);
    expect(strict.sql.steps.map(({ key }) => key)).toEqual(["host:127.0.0.1:8080"]);
  });

  it("W2 slots without a rate have no pace", async () => {
    const { admission, sql } = openRig({ routes: { DIRECT: { requestsPerSecond: null, concurrency: 2 } } });
    const exempt = { hostKey: "127.0.0.1:8080" };
    const both = [1, 2].map(() => admitOne(admission, exempt, hopTo("http://127.0.0.1:8080/")));
    expect((await Promise.all(both)).map(({ kind }) => kind)).toEqual(["GO", "GO"]);
    expect([sql.steps, sql.paces, admission.state.held]).toEqual([[], [], 2]);
  });

  it("W1 requests that wake late for their turns never bunch: they go 6 % wider apart than the rate, in turn, and one asks", async () => {
    const { admission, sql } = openRig();
    await admitOne(admission);
    // All of these times have passed: whoever booked them was late.
    const goneAtMs = performance.now();
    const wentMs: number[] = [];
    const late = Array.from({ length: 4 }, async (_, index) => {
      await admitOne(admission, { booking: bookedAt(performance.now() - 1 - index) });
      wentMs.push(performance.now() - goneAtMs);
      return index;
    });
    await pass(5_000);
    expect(await Promise.all(late)).toEqual([0, 1, 2, 3]);
    expect(wentMs).toEqual([1_050, 2_110, 3_170, 4_230]);
    // One of them asks for its line, as it moves up and when it may go: 15 if all of them asked.
    expect(sql.paces.length).toBe(1 + 4 + 1 + 3 * 2);
    expect(admission.state).toMatchObject({ admitted: 5, waiting: 0 });
  });

  it("W1 a late request that may not wait goes back with its turn, and comes again within a second", async () => {
    const { admission, sql } = openRig({ settings: { waitMs: 1_000 } });
    await admitOne(admission);
    sql.waiting = 1_000;
    const attempt = admission.forJob(jobOf({ booking: bookedAt(performance.now()) }), 60_000);
    const wait = waitOf(await attempt.admit(hopTo("http://a.example.com/")));
    expect(wait).toEqual({ horizonMs: 1_050, dueMs: 1_050 + 0.5 * 1_000 });
    expect(attempt.booking()?.hostKey).toBe("a.example.com");
  });

  it("W1 who is stopped in the line of the late ones leaves it: the next one moves up", async () => {
    const { admission } = openRig();
    await admitOne(admission);
    const hops = Array.from({ length: 3 }, () => hopTo("http://a.example.com/"));
    const late = hops.map((hop) => admitOne(admission, { booking: bookedAt(performance.now()) }, hop));
    await pass(100);
    hops[0]?.stopNow();
    hops[1]?.stopNow();
    await pass(950);
    expect((await Promise.all(late)).map(({ kind }) => kind)).toEqual(["STOPPED", "STOPPED", "GO"]);
  });

  it("W2 the pace holds for a route without slots, and both paces are taken or none", async () => {
    const { admission, sql, nextAtMs } = openRig({
      routes: { DIRECT: { requestsPerSecond: 1, concurrency: null } },
    });
    const exempt = hopTo("http://127.0.0.1:8080/");
    const job = { hostKey: "127.0.0.1:8080" };
    expect((await admitOne(admission, job, exempt)).kind).toBe("GO");
    const startedMs = performance.now();
    // A clock that was lost: the turns bunch, the pace does not.
    nextAtMs.clear();
    const second = admitOne(admission, job, exempt);
    const third = admitOne(admission, {}, hopTo("http://a.example.com/"));
    await pass(1_049);
    expect(admission.state).toMatchObject({ admitted: 1, held: 0 });
    await pass(1);
    expect((await second).kind).toBe("GO");
    await pass(1_100);
    expect((await third).kind).toBe("GO");
    expect(performance.now() - startedMs).toBe(2_150);
    expect(sql.paces[0]).toEqual(["route:DIRECT"]);
    expect(sql.paces.at(-1)).toEqual(["host:a.example.com", "route:DIRECT"]);
  });

  it("W2 a held host's request leaves the line of its route: the next host's goes in its stead", async () => {
    const { admission, nextAtMs } = openRig({ routes: { DIRECT: { requestsPerSecond: 1, concurrency: null } } });
    await admitOne(admission, { hostKey: "c.example.com" }, hopTo("http://c.example.com/"));
    nextAtMs.clear();
    const held = admitOne(admission, {}, hopTo("http://a.example.com/", { isFirst: false }));
    await pass(10);
    nextAtMs.clear();
    const next = admitOne(admission, { hostKey: "b.example.com" }, hopTo("http://b.example.com/"));
    await pass(10);
    admission.learnHold("a.example.com", 3_000);
    await pass(2_000);
    expect((await next).kind).toBe("GO");
    expect(admission.state).toMatchObject({ admitted: 2, waiting: 1 });
    await pass(2_000);
    expect((await held).kind).toBe("GO");
  });

  it("W2 a slot that is not free is waited for, and given back when the exchange ends", async () => {
    const { admission, sql } = openRig({ routes: { DIRECT: { requestsPerSecond: null, concurrency: 1 } } });
    sql.running.set("route:DIRECT", 1);
    const waiting = admitOne(admission);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(admission.state).toMatchObject({ waiting: 1, held: 0 });
    sql.running.set("route:DIRECT", 0);
    await vi.advanceTimersByTimeAsync(400);
    const verdict = await waiting;
    expect(admission.state).toMatchObject({ waiting: 0, held: 1 });
    if (verdict.kind === "GO") verdict.done();
    expect(admission.state.held).toBe(0);
  });

  it("W1 a slot that does not come free within the longest wait sends the job back, spread over those that wait", async () => {
    const { admission, sql } = openRig({ routes: { DIRECT: { requestsPerSecond: null, concurrency: 2 } } });
    sql.running.set("route:DIRECT", 2);
    sql.waiting = 8;
    const waiting = admitOne(admission);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(waitOf(await waiting)).toEqual({ horizonMs: 0, dueMs: 0.5 * (1_000 + 4_000) });
  });

  it("W2 a host that this process was just told to leave alone is left alone at once", async () => {
    const { admission, sql } = openRig();
    admission.learnHold("a.example.com", 7_000);
    expect(waitOf(await admitOne(admission))).toEqual({ horizonMs: 7_000, dueMs: 7_000 + 0.5 * 700 });
    expect([sql.steps, sql.looks]).toEqual([[], []]);
    await vi.advanceTimersByTimeAsync(7_000);
    expect((await admitOne(admission)).kind).toBe("GO");
  });

  it("W2 holds are looked at again when the last look is older than 50 ms, the claim's own counting as one", async () => {
    const { admission, sql, holds } = openRig({ settings: { hostRequestsPerSecond: 1_000 } });
    holds.set("a.example.com", performance.now() + 9_000);
    const claimedAtMs = performance.now();
    await vi.advanceTimersByTimeAsync(50);
    expect((await admitOne(admission, { claimedAtMs })).kind).toBe("GO");
    await vi.advanceTimersByTimeAsync(1);
    const verdict = admitOne(admission, { claimedAtMs });
    await vi.advanceTimersByTimeAsync(1);
    expect(waitOf(await verdict).horizonMs).toBeGreaterThan(8_000);
    expect(sql.looks).toEqual([["a.example.com"]]);
  });

  it("W2 a hold that was set while a request waited keeps it off, and what it booked stays with its job", async () => {
    const { admission, holds } = openRig();
    await admitOne(admission);
    const attempt = admission.forJob(jobOf(), 60_000);
    const verdict = attempt.admit(hopTo("http://a.example.com/"));
    await vi.advanceTimersByTimeAsync(500);
    holds.set("a.example.com", performance.now() + 2_000);
    await vi.advanceTimersByTimeAsync(600);
    expect(waitOf(await verdict).horizonMs).toBeGreaterThan(1_000);
    expect(attempt.booking()?.hostKey).toBe("a.example.com");
    expect(admission.state.held).toBe(1);
  });

  it("W2 a later request waits a hold out in place", async () => {
    const { admission } = openRig();
    admission.learnHold("a.example.com", 7_000);
    const later = admitOne(admission, {}, hopTo("http://a.example.com/", { isFirst: false }));
    await vi.advanceTimersByTimeAsync(6_999);
    await nextTurn();
    expect(admission.state.admitted).toBe(0);
    await vi.advanceTimersByTimeAsync(20);
    expect((await later).kind).toBe("GO");
  });

  it("looks for many hosts at once are one query", async () => {
    const { admission, sql } = openRig();
    const hosts = Array.from({ length: 50 }, (_, index) => `h${index}.example.com`);
    const all = hosts.map((host) =>
      admitOne(admission, { hostKey: host, claimedAtMs: -1_000 }, hopTo(`http://${host}/`)),
    );
    await vi.advanceTimersByTimeAsync(1);
    await Promise.all(all);
    expect(sql.looks).toEqual([hosts]);
  });

  it("a stop ends every wait at once, and so does the end of the worker", async () => {
    const { admission, sql, nextAtMs } = openRig({ routes: { DIRECT: { requestsPerSecond: null, concurrency: 1 } } });
    sql.running.set("route:DIRECT", 1);
    nextAtMs.set("host:a.example.com", performance.now() + 4_000);
    const hops = [hopTo("http://a.example.com/"), hopTo("http://b.example.com/")];
    const waiting = [admitOne(admission, {}, hops[0]), admitOne(admission, { hostKey: "b.example.com" }, hops[1])];
    const left = admitOne(admission, { hostKey: "c.example.com" }, hopTo("http://c.example.com/"));
    await vi.advanceTimersByTimeAsync(100);
    for (const hop of hops) hop.stopNow();
    expect((await Promise.all(waiting)).map(({ kind }) => kind)).toEqual(["STOPPED", "STOPPED"]);
    expect(admission.state.waiting).toBe(1);
    await admission.component.stop(0);
    expect((await left).kind).toBe("STOPPED");
    expect(admission.state).toMatchObject({ waiting: 0, held: 0 });
  });

  it("with Postgres away too a first request waits for it, then its job goes back; a bug is not taken for an outage", async () => {
    const { admission, sql } = openRig();
    sql.outage = true;
    const back = admitOne(admission);
    await vi.advanceTimersByTimeAsync(6_000);
    expect(waitOf(await back).dueMs).toBe(500);
    const patient = admitOne(admission, { claimedAtMs: performance.now() });
    await vi.advanceTimersByTimeAsync(100);
    sql.outage = false;
    await vi.advanceTimersByTimeAsync(300);
    expect((await patient).kind).toBe("GO");
    await expect(
      createAdmissionThatThrows().forJob(jobOf(), 1_000).admit(hopTo("http://a.example.com/")),
    ).rejects.toThrow("bug");
  });

  it("an attempt that asks for its next request has given its last slot back", async () => {
    const { admission } = openRig({ settings: { hostRequestsPerSecond: 1_000 } });
    const attempt = admission.forJob(jobOf(), 60_000);
    const first = await attempt.admit(hopTo("http://a.example.com/"));
    await vi.advanceTimersByTimeAsync(10);
    const second = await attempt.admit(hopTo("http://a.example.com/2", { isFirst: false }));
    expect(admission.state.held).toBe(1);
    for (const verdict of [first, second]) if (verdict.kind === "GO") verdict.done();
    expect(admission.state.held).toBe(0);
    expect(attempt.waitedMs()).toBe(0);
  });
});

function createAdmissionThatThrows(): Admission {
  const fail = () => Promise.reject(new Error("bug"));
  return createAdmission({
    redis: { redisUrl: "redis://127.0.0.1:1", prefix: "{unit}", logger: createLogger({ name: "t", level: "silent" }) },
    sql: {
      takeAdmission: fail,
      takePaces: fail,
      countRunningBefore: fail,
      countWaitingJobs: fail,
      listHostHolds: fail,
      isOutage: () => false,
    },
    settings: { waitMs: 5_000, hostRequestsPerSecond: 1, hostConcurrency: 4, isForAllowed: false, stickySessionMs: 1 },
    routes: {},
    slots: 4,
    leaseMs: 60_000,
  });
}
