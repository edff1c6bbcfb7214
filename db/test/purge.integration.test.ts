import { PURGE_KINDS } from "@keble-scraper/contract";
import { createDatabase, type Database } from "../src/database.ts";
import { countEndedInHour } from "../src/queries/count-ended-in-hour.ts";
import { getStats } from "../src/queries/get-stats.ts";
import { findJob } from "../src/queries/find-job.ts";
import { untilBlocked } from "@keble-scraper/testkit";
import postgres from "postgres";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { v7 as uuidv7 } from "uuid";
import { claimDeliveries, settleDeliveries } from "../src/commands/callbacks/index.ts";
import { expireJobs, recoverLeases, releaseJobs, settleJobs } from "../src/commands/fetching/index.ts";
import { cancelJob } from "../src/commands/intake/index.ts";
import { claimOne, delivered, deliveryOf, endJob, registerOne, replayRow } from "./callback-fixtures.ts";
import { claim, openTestDatabase, OPTIONS, passDeadline, submitOne, succeeded } from "./job-fixtures.ts";
import { BATCH, countRows, insertExpiredJobs, passMinute, purge, purged, untilMinuteHas } from "./purge-fixtures.ts";

let database: Awaited<ReturnType<typeof openTestDatabase>>;
let owner: postgres.Sql;
beforeAll(async () => {
  database = await openTestDatabase();
  owner = postgres(database.migrationUrl, { max: 2, onnotice: () => undefined });
  await owner`alter table attempts disable trigger attempts_hold_truncate`;
});
afterAll(async () => {
  await owner.end({ timeout: 1 });
  await database[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await owner`
    truncate jobs, attempts, callback_events, callback_deliveries, callback_tries, cache_entries, cache_flights, budgets, store_findings`;
  await passMinute(database);
});

/** Makes the job, its event, or both expire a second ago, whatever the state: nothing the product does would. */
async function expire(jobId: string, what: { readonly job?: true; readonly event?: true }): Promise<void> {
  const past = owner`clock_timestamp() - interval '1 second'`;
  if (what.job) await owner`update jobs set expires_at = ${past} where id = ${jobId}`;
  if (what.event) await owner`update callback_events set expires_at = ${past} where job_id = ${jobId}`;
}

/** Puts an event and its delivery into a state. */
async function setState(eventId: string, state: string): Promise<void> {
  const isEnded = state === "DELIVERED" || state === "DEAD_LETTER" || state === "DISCARDED";
  const reason = state === "DEAD_LETTER" ? "BUDGET_SPENT" : null;
  await owner`
    update callback_events set state = ${state}, dead_letter_reason = ${reason},
      ended_at = ${isEnded ? new Date() : null} where id = ${eventId}`;
  const lease = state === "LEASED" ? owner`gen_random_uuid()` : owner`null`;
  await owner`
    update callback_deliveries set state = ${state === "DISCARDED" ? "DEAD_LETTER" : state}, lease_token = ${lease},
      lease_until = ${state === "LEASED" ? new Date(Date.now() + 60_000) : null}, ended_at = ${isEnded ? new Date() : null}
    where event_id = ${eventId}`;
}

const exists = async (table: "jobs" | "callback_events", id: string) =>
  (await database.commands`select 1 from ${database.commands(table)} where id = ${id}`).length === 1;

test("R1 a job without an event gets its expiry at its end, however it ends", async () => {
  const { commands } = database;
  const [settled, cancelled, released, expired, lost] = await Promise.all(
    Array.from({ length: 5 }, () => submitOne(database, { attemptBudget: 1 })),
  );
  await owner`update jobs set due_at = clock_timestamp() - interval '1 s'`;
  const leases = new Map((await claim(database)).map((lease) => [lease.id, lease]));
  await settleJobs(commands, [{ ...succeeded(leases.get(settled!)!), bytes: null }], OPTIONS);
  await cancelJob(commands, { id: cancelled!, callerId: null }, OPTIONS);
  await releaseJobs(commands, [{ ...leases.get(released!)!, dueInMs: 1_000, horizonInMs: 86_400_000 }], OPTIONS);
  await owner`update jobs set lease_until = clock_timestamp() - interval '1 s' where id = ${lost!}`;
  await recoverLeases(commands, { limit: 10, jobRetentionMs: OPTIONS.jobRetentionMs });
  await passDeadline(database, expired!, 60_000);
  await expireJobs(commands, { limit: 10, ...OPTIONS });
  const rows = await owner<{ status: string; days: number }[]>`
    select status, extract(epoch from expires_at - finished_at)::float8 / 86400 as days from jobs order by status`;
  expect(rows.map((row) => row.status)).toEqual(["CANCELLED", "FAILED", "FAILED", "FAILED", "SUCCEEDED"]);
  for (const { days } of rows) expect(days).toBeCloseTo(90, 3);
});

describe("what is kept", () => {
  test.each(["PENDING", "LEASED", "DEAD_LETTER"])(
    "R1 a %s event is never purged, nor is its job, whatever their clocks say",
    async (state) => {
      const { jobId, eventId } = await endJob(database, await registerOne(database));
      await setState(eventId, state);
      await expire(jobId, { job: true, event: true });
      expect([await purged(database, "events"), await purged(database, "jobs")]).toEqual([0, 0]);
      expect([await exists("jobs", jobId), await exists("callback_events", eventId)]).toEqual([true, true]);
    },
  );

  test.each(["DELIVERED", "DISCARDED"] as const)(
    "R1 a %s event goes by its clock with its deliveries and tries, and its job still says how it ended",
    async (state) => {
      const { jobId, eventId } = await endJob(database, await registerOne(database));
      await setState(eventId, state);
      await expire(jobId, { event: true });
      await owner`
        insert into callback_tries (id, delivery_id, outcome, ordinal, lease_token, started_at, ended_at)
        values (${uuidv7()}, ${await deliveryOf(database, eventId)}, 'SUCCEEDED', 1, ${uuidv7()}, now(), now())`;
      expect((await findJob(database.reads, jobId, null))?.callback).toMatchObject({ eventId, state });
      expect(await purged(database, "events")).toBe(1);
      expect([await countRows(database, "callback_deliveries"), await countRows(database, "callback_tries")]).toEqual([
        0, 0,
      ]);
      expect((await findJob(database.reads, jobId, null))?.callback).toMatchObject({ eventId: null, state });
      expect(await purged(database, "jobs")).toBe(0);
      await expire(jobId, { job: true });
      expect(await purged(database, "jobs")).toBe(1);
      expect(await exists("jobs", jobId)).toBe(false);
    },
  );

  test("R1 an expired job takes its delivered event along, though the event's own clock runs", async () => {
    const { jobId, eventId } = await endJob(database, await registerOne(database));
    await setState(eventId, "DELIVERED");
    await owner`update callback_events set expires_at = now() + interval '1 min' where id = ${eventId}`;
    await expire(jobId, { job: true });
    expect([await purged(database, "events"), await purged(database, "jobs")]).toEqual([0, 1]);
    expect([await exists("jobs", jobId), await exists("callback_events", eventId)]).toEqual([false, false]);
  });

  test("R1 while a delivery of it is open a delivered event stays, and its job too; then they go", async () => {
    const { jobId, eventId } = await endJob(database, await registerOne(database));
    await setState(eventId, "DELIVERED");
    await expire(jobId, { job: true, event: true });
    const replay = await replayRow(database, eventId);
    expect([await purged(database, "events"), await purged(database, "jobs")]).toEqual([0, 0]);
    await owner`
      update callback_deliveries set state = 'DEAD_LETTER', dead_letter_reason = 'BUDGET_SPENT', ended_at = now()
      where id = ${replay}`;
    expect([await purged(database, "events"), await purged(database, "jobs")]).toEqual([1, 1]);
  });

  test("R1 events with open deliveries do not hide those that expired after them", async () => {
    const endpoint = await registerOne(database);
    const first = await endJob(database, endpoint);
    const second = await endJob(database, endpoint);
    for (const { jobId, eventId } of [first, second]) {
      await setState(eventId, "DELIVERED");
      await expire(jobId, { job: true, event: true });
    }
    await replayRow(database, first.eventId);
    expect(await purged(database, "events", { batch: 1 })).toBe(1);
    expect(await purged(database, "jobs", { batch: 1 })).toBe(1);
    expect(await exists("callback_events", first.eventId)).toBe(true);
  });

  /**
   * The purge's first statement has its snapshot, and stands at the row, when the replay commits. It locks the event, which
   * has not changed, and has not seen the delivery: only a look in a second statement does.
   */
  test.each(["events", "jobs"] as const)(
    "R1 a replay that is accepted while a purge of %s looks at its event is not lost",
    async (kind) => {
      const { jobId, eventId } = await endJob(database, await registerOne(database));
      await setState(eventId, "DELIVERED");
      await expire(jobId, { job: true, event: true });
      const table = owner(kind === "events" ? "callback_events" : "jobs");
      await owner`
        create or replace function pass_gate() returns boolean language plpgsql as $$
        begin
          perform pg_advisory_xact_lock_shared(77);
          return true;
        end $$`;
      await owner`alter table ${table} enable row level security`;
      await owner`create policy gate on ${table} using (pass_gate())`;
      const gate = await owner.reserve();
      try {
        await gate`select pg_advisory_lock(77)`;
        const purging = purged(database, kind);
        await untilBlocked(database.commands, { application: "test" });
        await replayRowAsOwner(eventId);
        await gate`select pg_advisory_unlock(77)`;
        expect(await purging).toBe(0);
        expect([await exists("jobs", jobId), await exists("callback_events", eventId)]).toEqual([true, true]);
      } finally {
        await gate`select pg_advisory_unlock_all()`;
        gate.release();
        await owner`drop policy gate on ${table}`;
        await owner`alter table ${table} disable row level security`;
      }
    },
  );
});

async function replayRowAsOwner(eventId: string): Promise<void> {
  await owner`
    insert into callback_deliveries (id, event_id, endpoint_id, trigger, ordinal, attempt_budget, due_at)
    select ${uuidv7()}, e.id, e.endpoint_id, 'REPLAY', 2, 3, now() from callback_events e where e.id = ${eventId}`;
}

describe("the clock of each kind", () => {
  test("R1 a job without an event goes by its own clock, with all its attempts", async () => {
    const jobId = await submitOne(database);
    await cancelJob(database.commands, { id: jobId, callerId: null }, { jobRetentionMs: 60_000 });
    await insertExpiredJobs(database, { count: 3, attempts: 4 });
    expect(await purged(database, "jobs")).toBe(3);
    expect([await countRows(database, "jobs"), await countRows(database, "attempts")]).toEqual([1, 0]);
    expect(await exists("jobs", jobId)).toBe(true);
  });

  test("R1 a delivered event and its job run by clocks of their own from the delivery on", async () => {
    const endpoint = await registerOne(database);
    const { jobId, eventId } = await endJob(database, endpoint);
    expect([await purged(database, "events"), await purged(database, "jobs")]).toEqual([0, 0]);
    const lease = await claimOne(database);
    await settleDeliveries(database.commands, [delivered(lease)], { eventRetentionMs: 0, jobRetentionMs: 60_000 });
    expect([await purged(database, "events"), await purged(database, "jobs")]).toEqual([1, 0]);
    expect([await exists("jobs", jobId), await exists("callback_events", eventId)]).toEqual([true, false]);
  });

  test("R1 stored answers go when they expire, flights an hour after their lease, findings when they expire", async () => {
    const sql = database.commands;
    const key = (byte: string) => Buffer.from(byte.repeat(32), "hex");
    await sql`
      insert into cache_entries (key, caller_id, result, size_bytes, validated_at, expires_at) values
        (${key("01")}, 'acme', '{}', 0, now(), now() - interval '1 s'), (${key("02")}, 'acme', '{}', 0, now(), now() + interval '1 min')`;
    await sql`
      insert into cache_flights (key, caller_id, job_id, lease_token, held_until) values
        (${key("01")}, 'acme', ${uuidv7()}, ${uuidv7()}, now() - interval '61 min'),
        (${key("02")}, 'acme', ${uuidv7()}, ${uuidv7()}, now() - interval '59 min')`;
    await sql`
      insert into store_findings (id, kind, sha256, generation, expires_at) values
        (${uuidv7()}, 'ORPHAN', '\\x01', 'old', now() - interval '1 s'), (${uuidv7()}, 'ORPHAN', '\\x01', 'new', now() + interval '1 min')`;
    for (const kind of ["cache", "flights", "findings"] as const) {
      expect([kind, await purged(database, kind), await purged(database, kind)]).toEqual([kind, 1, 0]);
    }
    expect(await sql`select key from cache_entries`).toMatchObject([{ key: key("02") }]);
    expect(await sql`select key from cache_flights`).toMatchObject([{ key: key("02") }]);
    expect(await sql`select generation from store_findings`).toMatchObject([{ generation: "new" }]);
  });

  test("R1 what was spent goes once its day or month is over for as long as the audit is kept, unless money is out with it", async () => {
    const day = (back: number) => owner`((now() at time zone 'UTC')::date - ${back}::int)`;
    await owner`
      insert into budgets (scope, name, period, starts_on, reserved_micros) values
        ('CALLER', 'old day', 'DAY', ${day(41)}, 0), ('CALLER', 'last day', 'DAY', ${day(40)}, 0),
        ('CALLER', 'out', 'DAY', ${day(50)}, 1), ('CALLER', 'old month', 'MONTH', ${day(71)}, 0),
        ('CALLER', 'month', 'MONTH', ${day(70)}, 0)`;
    expect(await purged(database, "budgets", { auditDays: 40 })).toBe(2);
    const left = await owner<{ name: string }[]>`select name from budgets order by name`;
    expect(left.map((row) => row.name)).toEqual(["last day", "month", "out"]);
    expect(await purged(database, "budgets", { auditDays: 0 })).toBe(2);
  });

  test("R1 what is left of a deleted artifact goes by its own clock, and counts as a purged row", async () => {
    await owner`
      insert into artifacts (id, caller_id, state, sha256, size_bytes, source_url, final_url, http_status, fetched_at, deleted_at, review_at)
      select uuid_v7(), 'acme', 'DELETED', '\\x01', 0, 'u', 'u', 200, now(), now(), now() + at
      from unnest(array[interval '-1 s', interval '1 min']) at`;
    await untilMinuteHas(database, 3);
    expect([await purged(database, "tombstones"), await purged(database, "tombstones")]).toEqual([1, 0]);
    expect(await countRows(database, "artifacts")).toBe(1);
    expect((await database.commands`select purged from purge_turn`)[0]).toMatchObject({ purged: { tombstones: 1 } });
  });

  test("R3 audit rows go by their own clock and by nothing else", async () => {
    const [before] = await owner<[{ count: number }]>`select count(*)::int as count from audit_events`;
    await owner`
      insert into audit_events (id, action, actor, subject, expires_at) values
        (${uuidv7()}, 'a.b', 'system:test', 'old', now() - interval '1 s'), (${uuidv7()}, 'a.b', 'system:test', 'new', now() + interval '1 min')`;
    expect([await purged(database, "audit"), await purged(database, "audit")]).toEqual([1, 0]);
    expect(await countRows(database, "audit_events")).toBe(before.count + 1);
  });
});

describe("the turn", () => {
  test("R2 in one minute no more rows of a kind go than the setting says, over all who purge", async () => {
    await insertExpiredJobs(database, { count: 60, attempts: 1 });
    await untilMinuteHas(database, 3);
    let gone = 0;
    let busy = 0;
    await Promise.all(
      Array.from({ length: 5 }, async () => {
        for (;;) {
          const answer = await purge(database, "jobs", { batch: 4, rowsPerMinute: 30 });
          if (answer.verdict === "SPENT") return;
          if (answer.verdict === "BUSY") busy += 1;
          else gone += answer.rows;
        }
      }),
    );
    expect([gone, await countRows(database, "jobs"), await countRows(database, "attempts")]).toEqual([30, 30, 30]);
    expect(busy).toBeGreaterThan(0);
    await owner`
      insert into store_findings (id, kind, sha256, generation, expires_at) values (${uuidv7()}, 'ORPHAN', '\\x01', 'old', now() - interval '1 s')`;
    expect(await purged(database, "findings", { rowsPerMinute: 30 })).toBe(1);
    expect((await database.commands`select purged from purge_turn`)[0]).toMatchObject({
      purged: { jobs: 30, findings: 1 },
    });
    await passMinute(database);
    expect(await purged(database, "jobs", { batch: 40, rowsPerMinute: 30 })).toBe(30);
    expect((await database.commands`select purged from purge_turn`)[0]).toEqual({ purged: { jobs: 30 } });
  });

  test("R2 a turn that was lost is made anew, and counts", async () => {
    await insertExpiredJobs(database, { count: 3, attempts: 1 });
    await owner`delete from purge_turn`;
    const [first, second] = await Promise.all([
      purge(database, "jobs", { rowsPerMinute: 2 }),
      purge(database, "jobs", { rowsPerMinute: 2 }),
    ]);
    const rows = [first, second].map((answer) => (answer.verdict === "PURGED" ? answer.rows : 0));
    expect(rows.reduce((sum, count) => sum + count)).toBe(2);
    expect(await owner`select id, purged from purge_turn`).toEqual([{ id: 1, purged: { jobs: 2 } }]);
  });

  test("R2 while somebody purges another is told so, and deletes nothing", async () => {
    await insertExpiredJobs(database, { count: 1, attempts: 1 });
    await owner.begin(async (tx) => {
      await tx`select 1 from purge_turn for update`;
      expect(await purge(database, "jobs")).toEqual({ verdict: "BUSY" });
    });
    expect(await purged(database, "jobs")).toBe(1);
  });

  test("R2 a job goes with all its attempts and its event or not at all, and what did not go is not counted", async () => {
    const endpoint = await registerOne(database);
    await insertExpiredJobs(database, { count: 2, attempts: 3, endpointId: endpoint.id });
    await owner`
      create or replace function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$`;
    await owner`create trigger refuse before delete on attempts for each row when (old.ordinal = 3) execute function refuse()`;
    try {
      await expect(purge(database, "jobs")).rejects.toThrow("refused");
      const counts = ["jobs", "attempts", "callback_events"].map((table) => countRows(database, table));
      expect(await Promise.all(counts)).toEqual([2, 6, 2]);
    } finally {
      await owner`drop trigger refuse on attempts`;
    }
    await untilMinuteHas(database, 3);
    expect(await purged(database, "jobs")).toBe(2);
    expect((await database.commands`select purged from purge_turn`)[0]).toEqual({ purged: { jobs: 2 } });
    expect([await countRows(database, "attempts"), await countRows(database, "callback_events")]).toEqual([0, 0]);
  });

  test("a batch says where to go on, and that nothing is left", async () => {
    await insertExpiredJobs(database, { count: 5, attempts: 0 });
    const first = await purge(database, "jobs", { batch: 3 });
    expect(first).toMatchObject({ verdict: "PURGED", rows: 3 });
    const since = first.verdict === "PURGED" ? (first.next?.since ?? null) : null;
    expect(since).toBeInstanceOf(Date);
    expect(await purge(database, "jobs", { batch: 3, since })).toEqual({ verdict: "PURGED", rows: 2, next: null });
  });
});

/** One connection whose statements fail rather than wait. */
async function withImpatient<T>(run: (impatient: Database) => Promise<T>): Promise<T> {
  const impatient = createDatabase({
    url: database.url,
    applicationName: "impatient",
    commandConnections: 1,
    readConnections: 1,
    statementTimeoutMs: 1_000,
  });
  try {
    return await run(impatient);
  } finally {
    await impatient.stop(performance.now() + 1_000);
  }
}

describe("beside others", () => {
  test("R2 a purge waits for nobody's lock on a job, an event or a delivery: what is locked stays for a later batch", async () => {
    const endpoint = await registerOne(database);
    await insertExpiredJobs(database, { count: 4, attempts: 1, endpointId: endpoint.id });
    const rows = await owner<{ id: string; event_id: string }[]>`
      select j.id, e.id as event_id from jobs j join callback_events e on e.job_id = j.id order by j.id`;
    const [job, event, delivery] = rows;
    await withImpatient((impatient) =>
      owner.begin(async (tx) => {
        await tx`select 1 from jobs where id = ${job!.id} for no key update`;
        await tx`select 1 from callback_events where id = ${event!.event_id} for key share`;
        await tx`select 1 from callback_deliveries where event_id = ${delivery!.event_id} for update`;
        expect(await purged(impatient, "events")).toBe(1);
        expect(await purged(impatient, "jobs")).toBe(1);
      }),
    );
    expect([await countRows(database, "jobs"), await countRows(database, "callback_events")]).toEqual([3, 3]);
    expect([await purged(database, "events"), await purged(database, "jobs")]).toEqual([3, 3]);
  });

  test("purges, deliveries, cancels and submits at once: nothing deadlocks, nothing is lost or goes twice", async () => {
    const endpoint = await registerOne(database);
    const clocks = { eventRetentionMs: 0, jobRetentionMs: 0 };
    const rounds = 12;
    let open = 0;
    let events = 0;
    let jobs = 0;
    const ending = Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let round = 0; round < rounds; round += 1) {
          await Promise.all([endJob(database, endpoint), endJob(database, endpoint)]);
          open += 2;
        }
      }),
    );
    let isOver = false;
    const delivering = (async () => {
      let left = 8 * rounds;
      while (left > 0) {
        const { leases } = await claimDeliveries(database.commands, {
          slots: 7,
          leaseSeconds: 60,
          afterEndpointId: null,
        });
        const verdicts = await settleDeliveries(
          database.commands,
          leases.map((lease) => delivered(lease)),
          clocks,
        );
        left -= verdicts.filter((verdict) => verdict.verdict === "SETTLED").length;
      }
    })();
    const purging = (kind: "events" | "jobs") =>
      (async () => {
        for (;;) {
          const wasOver = isOver;
          const answer = await purge(database, kind, { batch: 5, rowsPerMinute: 100_000 });
          if (answer.verdict === "PURGED") {
            if (kind === "events") events += answer.rows;
            else jobs += answer.rows;
            if (wasOver && answer.rows === 0) return;
          }
        }
      })();
    const purges = [purging("events"), purging("jobs"), purging("events"), purging("jobs")];
    await Promise.all([ending, delivering]);
    isOver = true;
    await Promise.all(purges);
    expect([open, jobs]).toEqual([8 * rounds, 8 * rounds]);
    expect(events).toBeLessThanOrEqual(8 * rounds);
    for (const table of ["jobs", "callback_events", "callback_deliveries", "callback_tries"]) {
      expect([table, await countRows(database, table)]).toEqual([table, 0]);
    }
  });

  test("every statement of a purge and of the stats goes by an index", async () => {
    const endpoint = await registerOne(database);
    await insertExpiredJobs(database, { count: 3, attempts: 2, endpointId: endpoint.id });
    await withImpatient(async (impatient) => {
      const { commands: sql, reads } = impatient;
      const scans = async () => {
        await sql`select pg_stat_force_next_flush()`;
        await reads.execute("select pg_stat_force_next_flush()");
        await sql`select pg_stat_clear_snapshot()`;
        return sql`select relname, seq_scan::int as scans from pg_stat_user_tables order by relname`;
      };
      const before = await scans();
      await getStats(reads, { rowsPerMinute: 1_000, auditDays: 400 });
      await countEndedInHour(reads, new Date());
      for (const kind of PURGE_KINDS) await purge(impatient, kind, BATCH);
      expect(await scans()).toEqual(before);
    });
    expect(await countRows(database, "jobs")).toBe(0);
  });
});
