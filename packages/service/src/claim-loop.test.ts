import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type ClaimLoopOptions, createClaimLoop } from "./claim-loop.ts";
import type { Lease, RunControl } from "./lease-keeper.ts";
import { createLogger, type Logger } from "./logger.ts";

const LEASE_MS = 4_000;
const POLL_MS = 1_000;

type Deferred<T> = { readonly promise: Promise<T>; resolve(value: T): void; reject(error: unknown): void };
function defer<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

/** Lets everything that is ready run, without moving time. */
const settle = () => vi.advanceTimersByTimeAsync(0);

type Run = { readonly lease: Lease; readonly control: RunControl; readonly end: Deferred<string> };

/** A worker whose queue, runs and settles the test moves by hand. */
function createRig(overrides: Partial<ClaimLoopOptions<Lease, string>> = {}) {
  let made = 0;
  const queue: Lease[] = [];
  const claims: { readonly free: number; readonly running: readonly string[] }[] = [];
  const renewals: (readonly string[])[] = [];
  const runs: Run[] = [];
  const finished: string[] = [];
  const faults: string[] = [];
  const lines: string[] = [];
  const logger: Logger = createLogger({
    name: "test",
    level: "info",
    destination: { write: (line: string) => void lines.push(String((JSON.parse(line) as { msg: unknown }).msg)) },
  });
  const loop = createClaimLoop<Lease, string>({
    name: "test",
    slots: 4,
    pollMs: POLL_MS,
    leaseMs: LEASE_MS,
    unsettledMax: 10,
    random: () => 0.5,
    claim(free, running) {
      claims.push({ free, running: running.map((lease) => lease.id) });
      return Promise.resolve(queue.splice(0, free));
    },
    renew(leases) {
      renewals.push(leases.map((lease) => lease.id));
      return Promise.resolve(new Set(leases.map((lease) => lease.token)));
    },
    run(lease, control) {
      const end = defer<string>();
      runs.push({ lease, control, end });
      return end.promise;
    },
    finish(lease) {
      finished.push(lease.id);
      return Promise.resolve();
    },
    onFault(lease) {
      faults.push(lease.id);
    },
    logger,
    ...overrides,
  });
  return {
    loop,
    claims,
    renewals,
    runs,
    finished,
    faults,
    lines,
    queue,
    add(count: number): void {
      for (let each = 0; each < count; each += 1) {
        made += 1;
        queue.push({ id: `job-${made}`, token: `token-${made}` });
      }
    },
    run(index: number): Run {
      const run = runs[index];
      if (!run) {
        throw new Error(`run ${index} has not begun`);
      }
      return run;
    },
    start: () => loop.start(new AbortController().signal),
    stop: (graceMs = 0) => loop.stop(performance.now() + graceMs),
  };
}

/** Ends every run as soon as it is aborted, as a worker does. */
function endOnAbort(_lease: Lease, control: RunControl): Promise<string> {
  return new Promise((resolve) => {
    const end = () => resolve(String(control.signal.reason));
    if (control.signal.aborted) {
      end();
    }
    control.signal.addEventListener("abort", end, { once: true });
  });
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("claiming", () => {
  test("a poke during a claim makes one more claim", async () => {
    const answers = [defer<Lease[]>(), defer<Lease[]>()];
    let calls = 0;
    const rig = createRig({ claim: () => answers[calls++]!.promise });
    await rig.start();
    rig.loop.poke();
    rig.loop.poke();
    await settle();
    expect(calls).toBe(1);
    answers[0]!.resolve([]);
    await settle();
    expect(calls).toBe(2);
    answers[1]!.resolve([]);
    await settle();
    expect(calls).toBe(2);
    await rig.stop();
  });

  test("claims go on until one comes back empty", async () => {
    const queue: Lease[] = Array.from({ length: 5 }, (_, index) => ({ id: `${index}`, token: `t${index}` }));
    const sizes: number[] = [];
    const rig = createRig({
      slots: 10,
      run: () => Promise.resolve("done"),
      claim() {
        const batch = queue.splice(0, 2);
        sizes.push(batch.length);
        return Promise.resolve(batch);
      },
    });
    await rig.start();
    await settle();
    expect(sizes).toEqual([2, 2, 1, 0]);
    await rig.stop();
  });

  test("a claim never asks for more than its free slots, and none is made while all are busy", async () => {
    const rig = createRig();
    rig.add(10);
    await rig.start();
    await settle();
    expect(rig.claims).toEqual([{ free: 4, running: [] }]);
    rig.loop.poke();
    await vi.advanceTimersByTimeAsync(POLL_MS * 3);
    expect(rig.claims).toHaveLength(1);
    expect(rig.loop.running).toBe(4);
    rig.run(0).end.resolve("done");
    await settle();
    expect(rig.claims[1]).toEqual({ free: 1, running: ["job-1", "job-2", "job-3", "job-4"] });
    expect(rig.loop.running).toBe(4);
    for (const run of rig.runs) {
      run.end.resolve("done");
    }
    await rig.stop();
  });

  test("few free slots beside busy ones wait 20 ms for more, and no longer", async () => {
    const rig = createRig();
    rig.add(4);
    await rig.start();
    await settle();
    await vi.advanceTimersByTimeAsync(POLL_MS / 2);
    rig.run(0).end.resolve("done");
    await settle();
    expect(rig.claims).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(19);
    expect(rig.claims).toHaveLength(1);
    rig.run(1).end.resolve("done");
    await vi.advanceTimersByTimeAsync(1);
    expect(rig.claims[1]?.free).toBe(2);
    for (const run of rig.runs) {
      run.end.resolve("done");
    }
    await rig.stop();
  });

  test("a slot is free before its settle, until too many outcomes wait for theirs", async () => {
    const settles = new Map<string, Deferred<void>>();
    const rig = createRig({
      slots: 2,
      unsettledMax: 1,
      finish(lease) {
        const done = defer<void>();
        settles.set(lease.id, done);
        return done.promise;
      },
    });
    rig.add(10);
    await rig.start();
    await settle();
    rig.run(0).end.resolve("done");
    rig.run(1).end.resolve("done");
    await vi.advanceTimersByTimeAsync(20);
    // Two outcomes wait where one may: the second holds its slot.
    expect(rig.claims.at(-1)?.free).toBe(1);
    expect(rig.loop.running).toBe(1);
    settles.get("job-1")?.resolve();
    await vi.advanceTimersByTimeAsync(20);
    expect(rig.loop.running).toBe(2);
    await vi.advanceTimersByTimeAsync(0);
    for (const run of rig.runs) {
      run.end.resolve("done");
    }
    await settle();
    for (const done of settles.values()) {
      done.resolve();
    }
    await rig.stop();
  });

  test("polls come by themselves, a tenth earlier or later than the interval", async () => {
    const randoms = [0, 0.999];
    const rig = createRig({ random: () => randoms.shift() ?? 0.5 });
    await rig.start();
    await settle();
    expect(rig.claims).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(POLL_MS * 0.9 - 1);
    expect(rig.claims).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(rig.claims).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(POLL_MS * 1.0999 - 5);
    expect(rig.claims).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(10);
    expect(rig.claims).toHaveLength(3);
    await rig.stop();
  });

  test("a claim that throws is tried again, ever more slowly, and is logged once per change", async () => {
    let isAway = true;
    let calls = 0;
    const rig = createRig({
      claim() {
        calls += 1;
        return isAway ? Promise.reject(new Error("no database")) : Promise.resolve([]);
      },
    });
    await rig.start();
    await settle();
    for (let poke = 0; poke < 100; poke += 1) {
      rig.loop.poke();
      await settle();
    }
    expect(calls).toBe(1);
    await vi.advanceTimersByTimeAsync(75);
    expect(calls).toBe(2);
    await vi.advanceTimersByTimeAsync(10 * POLL_MS);
    expect(calls).toBeGreaterThan(10);
    expect(calls).toBeLessThan(25);
    isAway = false;
    await vi.advanceTimersByTimeAsync(POLL_MS);
    expect(rig.lines.filter((line) => line.startsWith("claim."))).toEqual(["claim.failed", "claim.recovered"]);
    await rig.stop();
  });
});

describe("leases", () => {
  test("J2 a worker renews exactly what it has in hand, every quarter of a lease", async () => {
    const rig = createRig();
    rig.add(3);
    await rig.start();
    await settle();
    await vi.advanceTimersByTimeAsync(LEASE_MS / 4 - 1);
    expect(rig.renewals).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(rig.renewals).toEqual([["job-1", "job-2", "job-3"]]);
    rig.run(1).end.resolve("done");
    await vi.advanceTimersByTimeAsync(LEASE_MS / 4);
    expect(rig.renewals[1]).toEqual(["job-1", "job-3"]);
    rig.run(0).end.resolve("done");
    rig.run(2).end.resolve("done");
    await rig.stop();
  });

  test("J2 a lease that does not come back aborts its run and no other, and its outcome is not settled", async () => {
    const rig = createRig({ renew: (leases) => Promise.resolve(new Set([leases[0]!.token])) });
    rig.add(2);
    await rig.start();
    await vi.advanceTimersByTimeAsync(LEASE_MS / 4);
    expect(rig.run(0).control.signal.aborted).toBe(false);
    expect(rig.run(1).control.signal.reason).toBe("LEASE_LOST");
    expect(rig.run(1).control.isTrusted()).toBe(false);
    rig.run(0).end.resolve("done");
    rig.run(1).end.resolve("done");
    await settle();
    expect(rig.finished).toEqual(["job-1"]);
    await rig.stop();
  });

  test("J2 a renewal that hangs extends nothing: the run is aborted at its trust deadline and settles nothing", async () => {
    const renewal = defer<ReadonlySet<string>>();
    const rig = createRig({ renew: () => renewal.promise });
    rig.add(1);
    await rig.start();
    await vi.advanceTimersByTimeAsync(LEASE_MS - 1);
    const { control, end } = rig.run(0);
    expect(control.isTrusted()).toBe(true);
    expect(control.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(control.isTrusted()).toBe(false);
    expect(control.signal.reason).toBe("LEASE_LOST");
    end.resolve("done");
    await settle();
    expect(rig.finished).toEqual([]);
    await rig.stop();
  });

  test("J2 each lease is aborted at its own trust deadline, not at the next renewal after it", async () => {
    const rig = createRig({ renew: () => new Promise(() => undefined) });
    rig.add(1);
    await rig.start();
    await vi.advanceTimersByTimeAsync(100);
    rig.add(1);
    rig.loop.poke();
    await vi.advanceTimersByTimeAsync(20);
    expect(rig.runs).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(LEASE_MS - 1);
    expect(rig.run(0).control.signal.aborted).toBe(true);
    expect(rig.run(1).control.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(rig.run(1).control.signal.reason).toBe("LEASE_LOST");
    rig.run(0).end.resolve("done");
    rig.run(1).end.resolve("done");
    await rig.stop();
  });

  test("J2 an answer that comes after the next renewal began extends nothing", async () => {
    const answers: Deferred<ReadonlySet<string>>[] = [];
    const rig = createRig({
      renew() {
        const answer = defer<ReadonlySet<string>>();
        answers.push(answer);
        return answer.promise;
      },
    });
    rig.add(1);
    await rig.start();
    await vi.advanceTimersByTimeAsync(LEASE_MS / 2);
    expect(answers).toHaveLength(2);
    answers[0]!.resolve(new Set(["token-1"]));
    await vi.advanceTimersByTimeAsync(LEASE_MS / 2);
    expect(rig.run(0).control.isTrusted()).toBe(false);
    rig.run(0).end.resolve("done");
    await rig.stop();
  });

  test("J2 trust counts from the start of a renewal, not from its answer", async () => {
    const answers: Deferred<ReadonlySet<string>>[] = [];
    const rig = createRig({
      renew() {
        const answer = defer<ReadonlySet<string>>();
        answers.push(answer);
        return answer.promise;
      },
    });
    rig.add(1);
    await rig.start();
    await vi.advanceTimersByTimeAsync(LEASE_MS / 4 + 900);
    answers[0]!.resolve(new Set(["token-1"]));
    await vi.advanceTimersByTimeAsync(LEASE_MS - 901);
    expect(rig.run(0).control.isTrusted()).toBe(true);
    await vi.advanceTimersByTimeAsync(1);
    expect(rig.run(0).control.isTrusted()).toBe(false);
    rig.run(0).end.resolve("done");
    await rig.stop();
  });

  test("J2 trust that was lost does not return with a later good renewal", async () => {
    let isKept = false;
    const rig = createRig({
      renew: (leases) => Promise.resolve(new Set(isKept ? leases.map((lease) => lease.token) : [])),
    });
    rig.add(1);
    await rig.start();
    await vi.advanceTimersByTimeAsync(LEASE_MS / 4);
    isKept = true;
    await vi.advanceTimersByTimeAsync(LEASE_MS / 2);
    expect(rig.run(0).control.isTrusted()).toBe(false);
    rig.run(0).end.resolve("done");
    await rig.stop();
  });

  test("J2 a claim that took longer than the lease runs nothing", async () => {
    const answer = defer<Lease[]>();
    let calls = 0;
    const rig = createRig({ claim: () => (calls++ === 0 ? answer.promise : Promise.resolve([])) });
    await rig.start();
    await vi.advanceTimersByTimeAsync(LEASE_MS);
    answer.resolve([{ id: "late", token: "late" }]);
    await settle();
    expect(rig.runs).toEqual([]);
    expect(rig.lines).toContain("lease.came_late");
    await rig.stop();
  });

  test("J4 a run that throws leaves the list: it is reported, not settled, and renewed no more", async () => {
    const rig = createRig();
    rig.add(2);
    await rig.start();
    await settle();
    rig.run(0).end.reject(new Error("a bug"));
    await vi.advanceTimersByTimeAsync(LEASE_MS / 4);
    expect(rig.faults).toEqual(["job-1"]);
    expect(rig.finished).toEqual([]);
    expect(rig.renewals).toEqual([["job-2"]]);
    rig.run(1).end.resolve("done");
    await rig.stop();
  });

  test("J4 a settle that throws is reported, and the loop goes on", async () => {
    const rig = createRig({ finish: () => Promise.reject(new Error("a bug")) });
    rig.add(1);
    await rig.start();
    await settle();
    rig.run(0).end.resolve("done");
    await settle();
    expect(rig.faults).toEqual(["job-1"]);
    rig.add(1);
    rig.loop.poke();
    await settle();
    expect(rig.loop.running).toBe(1);
    rig.run(1).end.resolve("done");
    await rig.stop();
  });

  test("a cancelled row aborts its run and no other", async () => {
    const rig = createRig();
    rig.add(2);
    await rig.start();
    await settle();
    rig.loop.abort((lease) => ["job-2", "unknown"].includes(lease.id));
    expect(rig.run(0).control.signal.aborted).toBe(false);
    expect(rig.run(1).control.signal.reason).toBe("CANCELLED");
    rig.run(0).end.resolve("done");
    rig.run(1).end.resolve("done");
    await rig.stop();
  });
});

describe("drain", () => {
  test("O4 no claim is made after stop, and what ends within the grace settles", async () => {
    const rig = createRig();
    rig.add(2);
    await rig.start();
    await settle();
    const stopped = rig.stop(1_000);
    rig.loop.poke();
    await vi.advanceTimersByTimeAsync(500);
    expect(rig.run(0).control.signal.aborted).toBe(false);
    rig.run(0).end.resolve("done");
    rig.run(1).end.resolve("done");
    await stopped;
    expect(rig.finished).toEqual(["job-1", "job-2"]);
    expect(rig.claims).toHaveLength(1);
  });

  test("O4 what outlives the grace is aborted with DRAIN, and its outcome still settles", async () => {
    const outcomes: string[] = [];
    const rig = createRig({
      run: endOnAbort,
      finish(_lease, outcome) {
        outcomes.push(outcome);
        return Promise.resolve();
      },
    });
    rig.add(2);
    await rig.start();
    await settle();
    const stopped = rig.stop(1_000);
    await vi.advanceTimersByTimeAsync(999);
    expect(outcomes).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    await stopped;
    expect(outcomes).toEqual(["DRAIN", "DRAIN"]);
  });

  test("O4 leases are renewed until the last settle is done", async () => {
    const done = defer<void>();
    const rig = createRig({ run: endOnAbort, finish: () => done.promise });
    rig.add(1);
    await rig.start();
    await settle();
    const stopped = rig.stop(LEASE_MS);
    await vi.advanceTimersByTimeAsync(LEASE_MS + LEASE_MS / 2);
    expect(rig.renewals.length).toBe(6);
    done.resolve();
    await stopped;
    await vi.advanceTimersByTimeAsync(LEASE_MS * 2);
    expect(rig.renewals.length).toBe(6);
  });

  test("O4 rows of a claim that was under way are handed back at once", async () => {
    const answer = defer<Lease[]>();
    const outcomes: string[] = [];
    const rig = createRig({
      claim: () => answer.promise,
      run: endOnAbort,
      finish(_lease, outcome) {
        outcomes.push(outcome);
        return Promise.resolve();
      },
    });
    await rig.start();
    const stopped = rig.stop(1_000);
    answer.resolve([{ id: "late", token: "late" }]);
    await settle();
    await stopped;
    expect(outcomes).toEqual(["DRAIN"]);
  });

  test("O4 a run that ignores its abort holds the drain for 4 s at most, and settles nothing afterwards", async () => {
    const rig = createRig();
    rig.add(1);
    await rig.start();
    await settle();
    const stopped = rig.stop(0);
    await vi.advanceTimersByTimeAsync(4_000);
    await stopped;
    rig.run(0).end.resolve("done");
    await settle();
    expect(rig.finished).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("O4 a claim that outlives the drain runs nothing", async () => {
    const answer = defer<Lease[]>();
    const rig = createRig({ leaseMs: LEASE_MS * 10, claim: () => answer.promise });
    await rig.start();
    const stopped = rig.stop(0);
    await vi.advanceTimersByTimeAsync(4_000);
    await stopped;
    answer.resolve([{ id: "late", token: "late" }]);
    await settle();
    expect(rig.runs).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("stop is safe before start, shares its promise, and a second start is no second loop", async () => {
    const rig = createRig();
    await rig.stop();
    await rig.start();
    await rig.start();
    await settle();
    expect(rig.claims).toHaveLength(1);
    const first = rig.stop();
    expect(rig.stop()).toBe(first);
    await first;
    await rig.stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("500 starts and stops leave no timer, with work in hand and without", async () => {
    const rig = createRig({ run: endOnAbort });
    for (let cycle = 0; cycle < 500; cycle += 1) {
      rig.add(cycle % 3);
      await rig.start();
      if (cycle % 2 === 0) {
        await settle();
      }
      const stopped = rig.stop(0);
      await vi.advanceTimersByTimeAsync(0);
      await stopped;
    }
    expect(vi.getTimerCount()).toBe(0);
    expect(rig.faults).toEqual([]);
  });
});
