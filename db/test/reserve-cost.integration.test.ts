import { createGate, untilBlocked } from "@keble-scraper/testkit";
import { afterAll, beforeEach, expect, test } from "vitest";
import {
  type AttemptReport,
  expireJobs,
  type JobLease,
  recoverLeases,
  releaseJobs,
  settleJobs,
} from "../src/commands/fetching/index.ts";
import { cancelJob, submitJobs } from "../src/commands/intake/index.ts";
import { createDatabase } from "../src/database.ts";
import { findJob } from "../src/queries/find-job.ts";
import { listAttempts } from "../src/queries/list-attempts.ts";
import { listQuarantines } from "../src/queries/list-quarantines.ts";
import {
  OPTIONS,
  PAID,
  claim,
  claimOne,
  failedRetryably,
  newJob,
  openTestDatabase,
  passDeadline,
  reserve,
  submitOne,
  succeeded,
} from "./job-fixtures.ts";

const database = await openTestDatabase();
const sql = database.commands;
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(async () => {
  await sql`update jobs set reserved_micros = null, reserved_on = null, lease_until = null, lease_token = null,
            status = 'CANCELLED', finished_at = clock_timestamp() where finished_at is null`;
  await sql`delete from budgets`;
  await sql`delete from route_quarantines`;
});

async function submitMany(count: number, overrides: Parameters<typeof newJob>[0] = PAID, callerId = "acme") {
  await submitJobs(sql, { callerId, jobs: Array.from({ length: count }, () => newJob(overrides)), queuedMax: null });
}

async function budgetOf(scope: string, name: string, period: string, startsOn: string | null = null) {
  const [row] = await sql<{ settled: number; reserved: number; overrun: number }[]>`
    select sum(settled_micros)::int as settled, sum(reserved_micros)::int as reserved, sum(overrun_micros)::int as overrun
    from budgets where scope = ${scope} and name = ${name} and period = ${period}
      and (${startsOn}::date is null or starts_on = ${startsOn}::date)`;
  return row;
}

/** Every budget of the route and the caller, which must all say the same. */
async function budgets(name = "acme") {
  const all = await Promise.all([
    budgetOf("CALLER", name, "DAY"),
    budgetOf("CALLER", name, "MONTH"),
    budgetOf("ROUTE", "DATACENTER", "DAY"),
    budgetOf("ROUTE", "DATACENTER", "MONTH"),
  ]);
  for (const budget of all) expect(budget).toEqual(all[0]);
  return all[0];
}

async function claimPaid(): Promise<JobLease> {
  await submitOne(database, PAID);
  const lease = await claimOne(database);
  expect(await reserve(database, lease, 1_000)).toBe("RESERVED");
  return lease;
}

test.each(["routeDay", "routeMonth", "callerDay", "callerMonth"] as const)(
  "W3 of 200 reservations at once on a %s cap that pays for 40, exactly 40 are made",
  async (cap) => {
    await submitMany(200);
    const leases = await claim(database, 200);
    expect(leases).toHaveLength(200);
    const verdicts = await Promise.all(leases.map((lease) => reserve(database, lease, 1_000, { [cap]: 40_500 })));
    expect(verdicts.filter((verdict) => verdict === "RESERVED")).toHaveLength(40);
    expect(verdicts.filter((verdict) => verdict === "CAPACITY")).toHaveLength(160);
    expect(await budgets()).toEqual({ settled: 0, reserved: 40_000, overrun: 0 });
  },
);

test("W3 while reservations come, settle and are released at once, no cap is passed at any moment", async () => {
  await submitMany(120);
  const leases = await claim(database, 120);
  const cap = 20_000;
  const watch = new AbortController();
  const watched = (async () => {
    while (!watch.signal.aborted) {
      const [row] = await sql<
        { most: number | null }[]
      >`select max(settled_micros + reserved_micros)::int as most from budgets`;
      expect(row?.most ?? 0).toBeLessThanOrEqual(cap);
    }
  })();
  const run = async (lease: JobLease, index: number) => {
    for (let tries = 0; tries < 50; tries += 1) {
      const verdict = await reserve(database, lease, 1_000, { routeDay: cap });
      if (verdict === "CAP_EXCEEDED") return verdict;
      if (verdict !== "RESERVED") continue;
      if (index % 5 === 0) {
        await releaseJobs(sql, [{ ...lease, dueInMs: 60_000 }], OPTIONS);
        return "RELEASED";
      }
      await settleJobs(sql, [paid(succeeded(lease), index % 2 === 0 ? 400 : null)], OPTIONS);
      return "SETTLED";
    }
    return "CAPACITY";
  };
  const ends = await Promise.all(leases.map(run));
  watch.abort();
  await watched;
  const after = await budgets();
  expect(after?.reserved).toBe(0);
  expect(after?.settled).toBeLessThanOrEqual(cap);
  expect(after?.settled).toBeGreaterThan(cap - 1_000);
  expect(ends).toContain("CAP_EXCEEDED");
});

test("W3 settled spend is CAP_EXCEEDED; what is out with running attempts is CAPACITY until it settles", async () => {
  await submitMany(3);
  const [first, second, third] = (await claim(database, 3)) as [JobLease, JobLease, JobLease];
  const caps = { callerMonth: 1_500 };
  expect(await reserve(database, first, 1_000, caps)).toBe("RESERVED");
  expect(await reserve(database, second, 1_000, caps)).toBe("CAPACITY");
  expect(await reserve(database, third, 2_000, caps)).toBe("CAP_EXCEEDED");
  await settleJobs(sql, [paid(succeeded(first), 500)], OPTIONS);
  expect(await reserve(database, second, 1_000, caps)).toBe("RESERVED");
  await settleJobs(sql, [paid(succeeded(second), 1_000)], OPTIONS);
  expect(await reserve(database, third, 1, caps)).toBe("CAP_EXCEEDED");
  expect(await budgets()).toEqual({ settled: 1_500, reserved: 0, overrun: 0 });
});

test("W3 jobs that wait for money do not stand in the way of the settle that frees it", async () => {
  await submitMany(3);
  const [first, second, third] = (await claim(database, 3)) as [JobLease, JobLease, JobLease];
  const caps = { routeDay: 1_500 };
  expect(await reserve(database, first, 1_000, caps)).toBe("RESERVED");
  const lock = createGate();
  const locked = createGate();
  const settling = sql.begin(async (tx) => {
    await tx`select from budgets for update`;
    locked.open();
    await lock.opened;
  });
  await locked.opened;
  try {
    expect(await reserve(database, second, 1_000, caps)).toBe("CAPACITY");
    expect(await reserve(database, third, 1_501, caps)).toBe("CAP_EXCEEDED");
  } finally {
    lock.open();
    await settling;
  }
});

test("W3 what earlier attempts cost counts against the job's own cap", async () => {
  const id = await submitOne(database, { ...PAID, costCapMicros: 1_500 });
  const first = await claimOne(database);
  expect(first).toMatchObject({ costCapMicros: 1_500, costMicros: 0 });
  expect(await reserve(database, first, 1_501)).toBe("CAP_EXCEEDED");
  expect(await reserve(database, first, 1_000)).toBe("RESERVED");
  await settleJobs(sql, [paid(failedRetryably(first), 700)], OPTIONS);
  const second = await claimOne(database);
  expect(second.costMicros).toBe(700);
  expect(await reserve(database, second, 801)).toBe("CAP_EXCEEDED");
  expect(await reserve(database, second, 800)).toBe("RESERVED");
  await settleJobs(sql, [paid(succeeded(second), 800)], OPTIONS);
  expect(await findJob(database.reads, id, null)).toMatchObject({ limits: { costMicros: 1_500 } });
});

test("W3 a reservation that is asked for again under its token is made once", async () => {
  await submitOne(database, PAID);
  const lease = await claimOne(database);
  const verdicts = await Promise.all(Array.from({ length: 8 }, () => reserve(database, lease, 1_000)));
  expect(verdicts).toEqual(Array.from({ length: 8 }, () => "RESERVED"));
  expect(await budgets()).toEqual({ settled: 0, reserved: 1_000, overrun: 0 });
});

test("J2 a lost lease reserves nothing: not its old token, not an expired one, not another route's", async () => {
  const id = await submitOne(database, PAID);
  const lease = await claimOne(database);
  expect(await reserve(database, { ...lease, token: crypto.randomUUID() }, 1)).toBe("STALE");
  expect(await reserve(database, { ...lease, route: "UNLOCKER" }, 1)).toBe("STALE");
  await sql`update jobs set lease_until = clock_timestamp() - interval '1 ms' where id = ${id}`;
  expect(await reserve(database, lease, 1)).toBe("STALE");
  expect(await sql`select 1 from budgets`).toHaveLength(0);
});

test("J2 a lease that expired while its reservation waited for the job's lock reserves nothing", async () => {
  const id = await submitOne(database, PAID);
  const lease = await claimOne(database);
  await sql`update jobs set lease_until = clock_timestamp() + interval '1 s' where id = ${id}`;
  let asked: Promise<string> | undefined;
  await sql.begin(async (tx) => {
    await tx`select 1 from jobs where id = ${id} for update`;
    asked = reserve(database, lease, 1_000);
    await untilBlocked(sql, { answered: asked });
    for (;;) {
      const [row] = await tx`select 1 from jobs where id = ${id} and lease_until < clock_timestamp()`;
      if (row !== undefined) break;
    }
  });
  expect(await asked).toBe("STALE");
  expect(await sql`select 1 from budgets`).toHaveLength(0);
});

test("W3 a settle by use frees the rest of its reservation and is in the ledger", async () => {
  const lease = await claimPaid();
  await settleJobs(sql, [{ ...paid(succeeded(lease), 250), providerRequestId: "req-1" }], OPTIONS);
  expect(await budgets()).toEqual({ settled: 250, reserved: 0, overrun: 0 });
  const { items } = await listAttempts(database.reads, { jobId: lease.id, afterId: null, limit: 5 });
  expect(items).toMatchObject([{ costReservedMicros: 1_000, costMicros: 250, providerRequestId: "req-1" }]);
  expect(await findJob(database.reads, lease.id, null)).toMatchObject({ limits: { costMicros: 250 } });
});

test("W3 a settle above its reservation is recorded, counts in caps at the reservation and quarantines the route", async () => {
  const lease = await claimPaid();
  await settleJobs(sql, [paid(succeeded(lease), 1_750)], OPTIONS);
  expect(await budgets()).toEqual({ settled: 1_000, reserved: 0, overrun: 750 });
  const { items } = await listAttempts(database.reads, { jobId: lease.id, afterId: null, limit: 5 });
  expect(items).toMatchObject([{ costReservedMicros: 1_000, costMicros: 1_750 }]);
  expect(await listQuarantines(sql)).toMatchObject([
    { route: "DATACENTER", reason: "COST_OVERRUN", liftsAt: null, jobId: lease.id },
  ]);
});

const ENDINGS: Record<string, { end(lease: JobLease): Promise<unknown>; outcome: string }> = {
  "a lost attempt": {
    async end(lease) {
      await sql`update jobs set lease_until = clock_timestamp() - interval '1 ms' where id = ${lease.id}`;
      await recoverLeases(sql, { limit: 10, ...OPTIONS });
    },
    outcome: "LOST",
  },
  "an attempt that ran past its job's deadline": {
    async end(lease) {
      await passDeadline(database, lease.id, 2_001);
      await expireJobs(sql, { limit: 10, ...OPTIONS });
    },
    outcome: "LOST",
  },
  "a cancelled attempt": {
    end: (lease) => cancelJob(sql, { id: lease.id, callerId: null }, OPTIONS),
    outcome: "CANCELLED",
  },
  "a handed-back attempt, whatever it reports": {
    end: (lease) =>
      settleJobs(sql, [paid(failedRetryably(lease, { outcome: "HANDED_BACK", failure: null }), 10)], OPTIONS),
    outcome: "HANDED_BACK",
  },
  "an attempt that does not know what it cost": {
    end: (lease) => settleJobs(sql, [paid(failedRetryably(lease), null)], OPTIONS),
    outcome: "FAILED",
  },
};

test.each(Object.keys(ENDINGS))("W3 %s settles at its reservation and leaves none behind", async (name) => {
  const lease = await claimPaid();
  await ENDINGS[name]?.end(lease);
  expect(await budgets()).toEqual({ settled: 1_000, reserved: 0, overrun: 0 });
  const { items } = await listAttempts(database.reads, { jobId: lease.id, afterId: null, limit: 5 });
  expect(items).toMatchObject([
    { outcome: ENDINGS[name]?.outcome, costReservedMicros: 1_000, costMicros: 1_000, route: "DATACENTER" },
  ]);
  expect(await findJob(database.reads, lease.id, null)).toMatchObject({ limits: { costMicros: 1_000 } });
  expect(await reservationOf(lease.id)).toBeNull();
});

test("W3 a released attempt gives its reservation back and costs nothing", async () => {
  const lease = await claimPaid();
  await releaseJobs(sql, [{ ...lease, dueInMs: 5_000 }], OPTIONS);
  expect(await budgets()).toEqual({ settled: 0, reserved: 0, overrun: 0 });
  expect(await findJob(database.reads, lease.id, null)).toMatchObject({ limits: { costMicros: 0 } });
  expect(await reservationOf(lease.id)).toBeNull();
});

// Every way an attempt ends has to see a reservation that commits while it waits for the job, or money stays out for ever.
test.each(["settle", "release", "cancel", "settle without its reservation"])(
  "W3 a reservation that was made while a %s waited for the job's lock is ended with it",
  async (name) => {
    await submitOne(database, PAID);
    const lease = await claimOne(database);
    const plain = { ...failedRetryably(lease), costMicros: null };
    const end: Record<string, () => Promise<unknown>> = {
      settle: () => settleJobs(sql, [{ ...plain, hasReservation: true }], OPTIONS),
      "settle without its reservation": () => settleJobs(sql, [plain], OPTIONS),
      release: () => releaseJobs(sql, [{ ...lease, dueInMs: 1_000 }], OPTIONS),
      cancel: () => cancelJob(sql, { id: lease.id, callerId: null }, OPTIONS),
    };
    let ending: Promise<unknown> | undefined;
    await sql.begin(async (tx) => {
      await tx`select 1 from jobs where id = ${lease.id} for update`;
      ending = end[name]?.();
      await untilBlocked(sql);
      // What reserveCost writes, in a transaction that the ending waits for: the budgets' rows are new to its snapshot.
      await tx`update jobs set reserved_micros = 1000, reserved_on = '2026-11-30' where id = ${lease.id}`;
      await tx`insert into budgets (scope, name, period, starts_on, reserved_micros) values
        ('CALLER', 'acme', 'DAY', '2026-11-30', 1000), ('CALLER', 'acme', 'MONTH', '2026-11-01', 1000),
        ('ROUTE', 'DATACENTER', 'DAY', '2026-11-30', 1000), ('ROUTE', 'DATACENTER', 'MONTH', '2026-11-01', 1000)`;
    });
    await ending;
    const settled = name === "release" ? 0 : 1_000;
    expect(await budgets()).toEqual({ settled, reserved: 0, overrun: 0 });
    expect(await reservationOf(lease.id)).toBeNull();
    expect(await findJob(database.reads, lease.id, null)).not.toMatchObject({ status: "RUNNING" });
  },
);

test("W3 no statement ends a lease and leaves its reservation: the table refuses it", async () => {
  const lease = await claimPaid();
  await expect(
    sql`update jobs set status = 'QUEUED', lease_token = null, lease_until = null where id = ${lease.id}`,
  ).rejects.toThrow(/jobs_reserved/);
});

test("W3 a report that forgot its reservation is settled with it", async () => {
  const lease = await claimPaid();
  const [verdict] = await settleJobs(sql, [{ ...succeeded(lease), costMicros: 300 }], OPTIONS);
  expect(verdict?.verdict).toBe("SETTLED");
  expect(await budgets()).toEqual({ settled: 300, reserved: 0, overrun: 0 });
});

test("W3 what was reserved before midnight settles in the day and the month before it", async () => {
  const lease = await claimPaid();
  // Yesterday is the last day of a month.
  await sql`update jobs set reserved_on = '2026-10-31' where id = ${lease.id}`;
  await sql`update budgets set starts_on = case period when 'DAY' then date '2026-10-31' else date '2026-10-01' end`;
  await submitOne(database, PAID);
  const next = await claimOne(database);
  expect(await reserve(database, next, 1_000, { routeDay: 1_000, routeMonth: 1_000, callerDay: 1_000 })).toBe(
    "RESERVED",
  );
  await settleJobs(sql, [paid(succeeded(lease), 900), paid(succeeded(next), 400)], OPTIONS);
  for (const [scope, name] of [
    ["ROUTE", "DATACENTER"],
    ["CALLER", "acme"],
  ] as const) {
    const before = { settled: 900, reserved: 0, overrun: 0 };
    expect(await budgetOf(scope, name, "DAY", "2026-10-31")).toEqual(before);
    expect(await budgetOf(scope, name, "MONTH", "2026-10-01")).toEqual(before);
    expect(await budgetOf(scope, name, "DAY")).toEqual({ settled: 1_300, reserved: 0, overrun: 0 });
  }
  const rows = await sql`select 1 from budgets where reserved_micros <> 0`;
  expect(rows).toHaveLength(0);
});

test("W3 reservations of several callers and routes, their settles, losses and cancels never wait for each other in a ring", async () => {
  // On one pool transactions and statements would take turns.
  const { url } = database;
  const limits = { commandConnections: 6, readConnections: 1, statementTimeoutMs: 20_000 };
  const pool = createDatabase({ url, applicationName: "test-settling", ...limits });
  await using settling = Object.assign(pool, { [Symbol.asyncDispose]: () => pool.stop(performance.now() + 1_000) });
  // Whether two of them meet half way is chance, so they get several.
  const rounds = 4;
  for (let round = 0; round < rounds; round += 1) {
    for (const callerId of ["a", "b"]) {
      await submitMany(60, { routes: ["DATACENTER"], costCapMicros: 1_000_000 }, callerId);
      await submitMany(60, { routes: ["RESIDENTIAL"], costCapMicros: 1_000_000 }, callerId);
    }
    await sql`update jobs set due_at = due_at - interval '1 s' where status = 'QUEUED'`;
    const all = await claim(database, 240);
    expect(all).toHaveLength(240);
    const [leases, others] = [all.slice(0, 120), all.slice(120)];
    await Promise.all(leases.map((lease) => reserve(database, lease, 100)));
    const groups = Array.from({ length: 12 }, (_, index) => leases.filter((_lease, at) => at % 12 === index));
    const settle = (group: JobLease[]) =>
      settleJobs(
        settling.commands,
        group.map((lease) => paid(succeeded(lease), 60)),
        OPTIONS,
      );
    const release = (group: JobLease[]) =>
      releaseJobs(
        settling.commands,
        group.map((lease) => ({ id: lease.id, token: lease.token, dueInMs: 60_000 })),
        OPTIONS,
      );
    const cancel = (group: JobLease[]) =>
      Promise.all(group.map((lease) => cancelJob(settling.commands, { id: lease.id, callerId: null }, OPTIONS)));
    await Promise.all(
      groups.flatMap<Promise<unknown>>((group, index) => [
        ...others.slice(index * 10, index * 10 + 10).map((lease) => reserve(database, lease, 100)),
        index < 8 ? settle(index % 2 === 0 ? group : group.toReversed()) : index < 10 ? release(group) : cancel(group),
      ]),
    );
    await Promise.all(others.map((lease) => cancelJob(sql, { id: lease.id, callerId: null }, OPTIONS)));
  }
  const [row] = await sql<{ reserved: number; settled: number }[]>`
    select sum(reserved_micros)::int as reserved, sum(settled_micros)::int as settled from budgets
    where scope = 'CALLER' and period = 'MONTH'`;
  // In each round 80 settle at 60, 20 are cancelled and 120 more are cancelled at 100, 20 cost nothing.
  expect(row).toEqual({ reserved: 0, settled: rounds * (80 * 60 + 20 * 100 + 120 * 100) });
});

function paid(report: AttemptReport, costMicros: number | null): AttemptReport {
  return { ...report, hasReservation: true, costMicros };
}

async function reservationOf(id: string): Promise<number | null> {
  const [row] = await sql<
    { reserved: number | null }[]
  >`select reserved_micros::int as reserved from jobs where id = ${id}`;
  return row?.reserved ?? null;
}
