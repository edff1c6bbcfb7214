import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  claimDeliveries,
  closeStrandedDeliveries,
  deleteEndpoint,
  type DeliveryLease,
  patchEndpoint,
  recoverDeliveries,
  renewDeliveries,
  settleDeliveries,
  storePayloads,
  type TryReport,
} from "../src/commands/callbacks/index.ts";
import { DELIVERY_STATES, DELIVERY_TRANSITIONS, type DeliveryState } from "../src/machines/delivery-machine.ts";
import { createDatabase, findEndpoint } from "../src/index.ts";
import {
  BY,
  claim,
  claimOne,
  CLOCKS,
  delivered,
  deliveryOf,
  endJob,
  endJobs,
  expireLease,
  gone,
  makeDue,
  newEndpoint,
  readDelivery,
  refused,
  registerOne,
  replayRow,
} from "./callback-fixtures.ts";
import { openTestDatabase } from "./job-fixtures.ts";

const DAY_MS = 86_400_000;

let database: Awaited<ReturnType<typeof openTestDatabase>>;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());
// Each test starts with nothing to claim.
afterEach(async () => {
  await database.commands`
    update callback_endpoints set deleted_at = clock_timestamp() where deleted_at is null`;
  await database.commands`
    update callback_deliveries set lease_until = clock_timestamp() - interval '1 s' where lease_token is not null`;
  await recoverDeliveries(database.commands, 1_000);
  await closeStrandedDeliveries(database.commands, 1_000);
});

const settle = (...reports: TryReport[]) => settleDeliveries(database.commands, reports, CLOCKS);
const settleOne = async (report: TryReport) => (await settle(report))[0]!;

describe("claimDeliveries", () => {
  it("answers all that a try needs and counts the try", async () => {
    const endpoint = await registerOne(database);
    const { jobId, eventId } = await endJob(database, endpoint);
    const before = Date.now();
    const lease = await claimOne(database);
    expect(lease).toMatchObject({
      eventId,
      jobId,
      eventType: "job.cancelled",
      callerId: "acme",
      endpointId: endpoint.id,
      url: endpoint.url,
      timeoutMs: 15_000,
      attemptsUsed: 1,
      attemptBudget: 3,
      payload: null,
      secrets: [{ keyId: "0a1b2c3d", ciphertext: Buffer.from("sealed") }],
    });
    expect(Math.abs(lease.claimedAtMs - before)).toBeLessThan(5_000);
    expect(await readDelivery(database, lease.id)).toMatchObject({
      state: "LEASED",
      event_state: "LEASED",
      attempts_used: 1,
      lease_token: lease.token,
    });
    expect(await claim(database)).toEqual([]);
  });

  it("hands out all live secrets, the newest first, and no expired one", async () => {
    const endpoint = await registerOne(database);
    await database.commands`
      insert into callback_secrets (id, endpoint_id, key_id, ciphertext, expires_at) values
        (uuid_v7(), ${endpoint.id}, 'newer', 'b', clock_timestamp() + interval '1 hour'),
        (uuid_v7(), ${endpoint.id}, 'expired', 'c', clock_timestamp() - interval '1 ms')`;
    await endJob(database, endpoint);
    const lease = await claimOne(database);
    expect(lease.secrets.map((secret) => secret.keyId)).toEqual(["newer", "0a1b2c3d"]);
  });

  it("C2 never has more of one endpoint under way than its concurrency, with four claimers at once", async () => {
    const narrow = await registerOne(database, { maxConcurrency: 3 });
    await endJobs(database, narrow, 40);
    const pools = [1, 2, 3, 4].map(() =>
      createDatabase({
        url: database.url,
        applicationName: "claimer",
        commandConnections: 1,
        readConnections: 1,
        statementTimeoutMs: 5_000,
      }),
    );
    let isOver = false;
    const claimed = new Set<string>();
    const claimer = async (index: number) => {
      while (!isOver) {
        const batch = await claimDeliveries(pools[index]!.commands, {
          slots: 10,
          leaseSeconds: 60,
          afterEndpointId: null,
        });
        for (const lease of batch.leases) {
          expect(claimed.has(lease.id)).toBe(false);
          claimed.add(lease.id);
        }
        // One by one, so that others claim while some of the room is taken.
        for (const lease of batch.leases) await settle(delivered(lease));
        isOver ||= claimed.size === 40;
      }
    };
    const watch = async () => {
      let most = 0;
      while (!isOver) {
        const [row] = await database.commands<[{ count: number }]>`
          select count(*)::int as count from callback_deliveries where endpoint_id = ${narrow.id} and lease_token is not null`;
        most = Math.max(most, row.count);
      }
      return most;
    };
    const [most] = await Promise.all([watch(), claimer(0), claimer(1), claimer(2), claimer(3)]);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(3);
    await Promise.all(pools.map((pool) => pool.stop(performance.now() + 1_000)));
  });

  it("C2 counts what is under way after it has the endpoint, not before", async () => {
    const narrow = await registerOne(database, { maxConcurrency: 1 });
    await endJobs(database, narrow, 2);
    // The second claim begins while the first holds the endpoint and has not committed: it must find no room, whether it
    // skips the endpoint or comes after the commit.
    await Promise.all(
      [1, 2, 3, 4, 5, 6].map(() =>
        claimDeliveries(database.commands, { slots: 1, leaseSeconds: 60, afterEndpointId: null }),
      ),
    );
    const [row] = await database.commands<[{ count: number }]>`
      select count(*)::int as count from callback_deliveries where endpoint_id = ${narrow.id} and lease_token is not null`;
    expect(row.count).toBe(1);
  });

  it("shares slots over endpoints, and goes round the ring", async () => {
    const endpoints = [await registerOne(database), await registerOne(database), await registerOne(database)];
    await endJobs(database, endpoints[0]!, 9);
    await endJobs(database, endpoints[1]!, 9);
    await endJobs(database, endpoints[2]!, 1);
    const leases = await claim(database, 6);
    const count = (index: number) => leases.filter((lease) => lease.endpointId === endpoints[index]!.id).length;
    expect([count(0), count(1), count(2)]).toEqual([2, 2, 1]);
    const first = await claimDeliveries(database.commands, {
      slots: 1,
      leaseSeconds: 60,
      afterEndpointId: endpoints[0]!.id,
    });
    expect(first).toMatchObject({ leases: [{ endpointId: endpoints[1]!.id }], lastEndpointId: endpoints[1]!.id });
    const next = await claimDeliveries(database.commands, {
      slots: 1,
      leaseSeconds: 60,
      afterEndpointId: first.lastEndpointId,
    });
    expect(next.leases.map((lease) => lease.endpointId)).toEqual([endpoints[0]!.id]);
  });

  it("passes over full endpoints to those that have room", async () => {
    const full = await registerOne(database, { maxConcurrency: 1 });
    await endJobs(database, full, 3);
    await claimOne(database);
    const free = await registerOne(database);
    await endJob(database, free);
    const [lease] = await claim(database, 1);
    expect(lease!.endpointId).toBe(free.id);
  });

  it("never claims for an endpoint that is disabled or deleted, nor what is not due yet", async () => {
    const endpoints = [await registerOne(database), await registerOne(database), await registerOne(database)];
    for (const endpoint of endpoints) await endJob(database, endpoint);
    await database.commands`
      update callback_endpoints set disabled_at = clock_timestamp(), disabled_reason = 'GONE' where id = ${endpoints[0]!.id}`;
    await database.commands`update callback_endpoints set deleted_at = clock_timestamp() where id = ${endpoints[1]!.id}`;
    await database.commands`
      update callback_deliveries set due_at = clock_timestamp() + interval '1 hour' where endpoint_id = ${endpoints[2]!.id}`;
    expect(await claim(database)).toEqual([]);
  });

  it("scans no table: every claim and settle goes by an index", async () => {
    const endpoint = await registerOne(database);
    await endJobs(database, endpoint, 5);
    // One session, because each counts its own scans and tells them when asked.
    const alone = createDatabase({
      url: database.url,
      applicationName: "alone",
      commandConnections: 1,
      readConnections: 1,
      statementTimeoutMs: 5_000,
    });
    const sql = alone.commands;
    const scans = async () => {
      await sql`select pg_stat_force_next_flush()`;
      await sql`select pg_stat_clear_snapshot()`;
      return sql<{ relname: string; scans: number }[]>`
        select relname, seq_scan::int as scans from pg_stat_user_tables
        where relname like 'callback%' or relname = 'jobs' order by relname`;
    };
    const baseline = await scans();
    const batch = await claimDeliveries(sql, { slots: 4, leaseSeconds: 60, afterEndpointId: endpoint.id });
    const [first, second, third, fourth] = batch.leases;
    await storePayloads(
      sql,
      batch.leases.map((lease) => ({ ...lease, payload: "{}" })),
    );
    await renewDeliveries(sql, batch.leases, 60);
    await settleDeliveries(sql, [delivered(first!), refused(second!), gone(third!)], CLOCKS);
    await expireLease(database, fourth!.id);
    await recoverDeliveries(sql, 10);
    await closeStrandedDeliveries(sql, 10);
    const after = await scans();
    await alone.stop(performance.now() + 1_000);
    expect(after).toEqual(baseline);
    expect(after.length).toBeGreaterThan(4);
  });
});

describe("storePayloads", () => {
  it("C3 keeps the bytes of the first try, on every later one", async () => {
    const endpoint = await registerOne(database);
    await endJob(database, endpoint);
    const lease = await claimOne(database);
    const store = (held: DeliveryLease, payload: string) =>
      storePayloads(database.commands, [{ id: held.id, token: held.token, payload }]);
    expect(await store(lease, '{"a":"é\u2028"}')).toEqual(new Map([[lease.token, '{"a":"é\u2028"}']]));
    expect(await store(lease, "other")).toEqual(new Map([[lease.token, '{"a":"é\u2028"}']]));
    await settle(refused(lease));
    const again = await claimOne(database);
    expect(again.payload).toBe('{"a":"é\u2028"}');
  });

  it("J2 a lost lease stores nothing", async () => {
    const endpoint = await registerOne(database);
    await endJob(database, endpoint);
    const lease = await claimOne(database);
    await expireLease(database, lease.id);
    expect(await storePayloads(database.commands, [{ ...lease, payload: "late" }])).toEqual(new Map());
    await recoverDeliveries(database.commands, 10);
    const next = await claimOne(database);
    expect(await storePayloads(database.commands, [{ ...lease, payload: "late" }])).toEqual(new Map());
    expect(await readDelivery(database, next.id)).toMatchObject({ payload: null });
  });
});

describe("settleDeliveries", () => {
  it("R1 a delivered event and its job get their expiry in the same transaction, and not before", async () => {
    const endpoint = await registerOne(database);
    await endJob(database, endpoint);
    const first = await claimOne(database);
    await settle(refused(first));
    const waiting = await readDelivery(database, first.id);
    expect(waiting).toMatchObject({ event_state: "PENDING", event_expires_in_ms: null, job_expires_in_ms: null });
    const lease = await claimOne(database);
    expect(await settleOne(delivered(lease))).toMatchObject({ verdict: "SETTLED", state: "DELIVERED" });
    const after = await readDelivery(database, lease.id);
    expect(after).toMatchObject({
      state: "DELIVERED",
      event_state: "DELIVERED",
      attempts_used: 2,
      lease_token: null,
      tries: [
        { outcome: "FAILED", ordinal: 1, code: "HTTP_SERVER_ERROR", token: first.token },
        { outcome: "SUCCEEDED", ordinal: 2, code: null, token: lease.token },
      ],
    });
    expect(after.event_expires_in_ms! / DAY_MS).toBeCloseTo(30, 2);
    expect(after.job_expires_in_ms! / DAY_MS).toBeCloseTo(90, 2);
  });

  it("C2 tries until the stored budget is spent, then it is a dead letter that is kept with its job", async () => {
    const endpoint = await registerOne(database, { attemptBudget: 2 });
    await endJob(database, endpoint);
    // The budget is the delivery's own: what the endpoint says now does not matter.
    await database.commands`update callback_endpoints set attempt_budget = 9 where id = ${endpoint.id}`;
    const first = await claimOne(database);
    expect(await settleOne(refused(first))).toMatchObject({ verdict: "SETTLED", state: "PENDING" });
    const second = await claimOne(database);
    expect(await settleOne(refused(second))).toMatchObject({ state: "DEAD_LETTER", deadLetterReason: "BUDGET_SPENT" });
    expect(await readDelivery(database, second.id)).toMatchObject({
      event_state: "DEAD_LETTER",
      event_reason: "BUDGET_SPENT",
      event_expires_in_ms: null,
      job_expires_in_ms: null,
      attempts_used: 2,
      job_status: "CANCELLED",
    });
  });

  it("F2 waits for the longer of backoff and Retry-After, at most 24 hours, and writes when", async () => {
    const endpoint = await registerOne(database, { attemptBudget: 20 });
    await endJob(database, endpoint);
    const waits: [number, number | null, number][] = [
      [5_000, null, 5_000],
      [5_000, 60_000, 60_000],
      [90_000, 60_000, 90_000],
      [0, 48 * 3_600_000, 24 * 3_600_000],
      [0, Number.POSITIVE_INFINITY, 24 * 3_600_000],
      [100 * 3_600_000, null, 24 * 3_600_000],
    ];
    for (const [backoffMs, retryAfterMs, expectedMs] of waits) {
      const lease = await claimOne(database);
      await settle(refused(lease, { backoffMs, retryAfterMs }));
      const row = await readDelivery(database, lease.id);
      expect(Math.abs(row.due_in_ms - expectedMs)).toBeLessThan(2_000);
      const retryAt = row.tries.at(-1)!.retryAt;
      if (retryAfterMs === null) expect(retryAt).toBeNull();
      else expect(Math.abs(Date.parse(retryAt!) - Date.now() - Math.min(retryAfterMs, DAY_MS))).toBeLessThan(5_000);
      await makeDue(database);
    }
  });

  it("gives the count of a try that sent nothing back, with no try to show", async () => {
    const endpoint = await registerOne(database, { attemptBudget: 1 });
    await endJob(database, endpoint);
    const lease = await claimOne(database);
    expect(await settleOne(delivered(lease, { outcome: "UNSENT", httpStatus: null }))).toMatchObject({
      state: "PENDING",
    });
    expect(await readDelivery(database, lease.id)).toMatchObject({
      attempts_used: 0,
      tries: [],
      event_state: "PENDING",
    });
    const again = await claimOne(database);
    expect(await settleOne(delivered(again))).toMatchObject({ state: "DELIVERED" });
  });

  it("C3 410 disables the endpoint, ends this delivery and those that wait, and is audited as the service's act", async () => {
    const endpoint = await registerOne(database);
    await endJobs(database, endpoint, 3);
    const [lease, other] = await claim(database, 2);
    const waiting = await database.commands<{ id: string }[]>`
      select id from callback_deliveries where endpoint_id = ${endpoint.id} and state = 'PENDING'`;
    expect(await settleOne(gone(lease!))).toMatchObject({
      state: "DEAD_LETTER",
      deadLetterReason: "ENDPOINT_DISABLED",
    });
    expect(await findEndpoint(database.reads, endpoint.id, null)).toMatchObject({
      enabled: false,
      disabledReason: "GONE",
    });
    expect(await readDelivery(database, waiting[0]!.id)).toMatchObject({
      state: "DEAD_LETTER",
      event_reason: "ENDPOINT_DISABLED",
      attempts_used: 0,
    });
    expect(await readDelivery(database, lease!.id)).toMatchObject({
      event_state: "DEAD_LETTER",
      tries: [{ ordinal: 1 }],
    });
    expect(await readDelivery(database, other!.id)).toMatchObject({ state: "LEASED" });
    expect(await settleOne(gone(other!))).toMatchObject({ state: "DEAD_LETTER" });
    const audit = await database.commands<{ actor: string; details: object }[]>`
      select actor, details from audit_events
      where subject = ${`callback-endpoint:${endpoint.id}`} and action = 'callback-endpoint.disabled'`;
    expect(audit.map((row) => ({ ...row }))).toEqual([{ actor: "system:callbacks", details: { reason: "GONE" } }]);
  });

  it("410 from a URL that the endpoint no longer has disables nothing: the new one is tried", async () => {
    const endpoint = await registerOne(database);
    await endJobs(database, endpoint, 2);
    const [lease, other] = await claim(database, 2);
    await patchEndpoint(
      database.commands,
      { id: endpoint.id, callerId: null },
      { url: "https://new.example.com/" },
      BY,
    );
    expect(await settleOne(gone(lease!))).toMatchObject({ state: "PENDING" });
    expect(await settleOne(refused(other!, { next: "FORBIDDEN" }))).toMatchObject({ state: "PENDING" });
    expect(await findEndpoint(database.reads, endpoint.id, null)).toMatchObject({ enabled: true });
    expect((await claimOne(database)).url).toBe("https://new.example.com/");
  });

  it("J2 a stale 410 disables nothing", async () => {
    const endpoint = await registerOne(database);
    await endJob(database, endpoint);
    const lease = await claimOne(database);
    await expireLease(database, lease.id);
    expect(await settleOne(gone(lease))).toMatchObject({ verdict: "STALE" });
    expect(await findEndpoint(database.reads, endpoint.id, null)).toMatchObject({ enabled: true });
    expect(await readDelivery(database, lease.id)).toMatchObject({ state: "LEASED", tries: [] });
  });

  it("gives up at once on a URL that may not be requested", async () => {
    const endpoint = await registerOne(database);
    await endJob(database, endpoint);
    const lease = await claimOne(database);
    const report = refused(lease, { next: "FORBIDDEN", httpStatus: null });
    expect(await settleOne(report)).toMatchObject({ state: "DEAD_LETTER", deadLetterReason: "TARGET_FORBIDDEN" });
    expect(await readDelivery(database, lease.id)).toMatchObject({ event_reason: "TARGET_FORBIDDEN" });
  });

  it("C3 a replay of a delivered event ends alone: the event stays delivered, its clock runs on", async () => {
    const endpoint = await registerOne(database);
    const { eventId } = await endJob(database, endpoint);
    await settle(delivered(await claimOne(database)));
    const replayId = await replayRow(database, eventId);
    const before =
      await database.commands`select state, expires_at, ended_at from callback_events where id = ${eventId}`;
    const lease = await claimOne(database);
    expect(lease).toMatchObject({ id: replayId, eventId, attemptsUsed: 1 });
    await settle(refused(lease, { next: "FORBIDDEN" }));
    expect(await readDelivery(database, replayId)).toMatchObject({ state: "DEAD_LETTER", event_state: "DELIVERED" });
    const after =
      await database.commands`select state, expires_at, ended_at from callback_events where id = ${eventId}`;
    expect(after).toEqual(before);
  });

  it("J2 settles a mixed group row by row: a stale report writes nothing and harms no other", async () => {
    const endpoint = await registerOne(database);
    await endJobs(database, endpoint, 3);
    const [first, second, third] = await claim(database, 3);
    await expireLease(database, second!.id);
    const verdicts = await settle(delivered(first!), delivered(second!), refused(third!));
    const of = (lease: DeliveryLease) => verdicts.find((verdict) => verdict.token === lease.token);
    expect(of(first!)).toMatchObject({ verdict: "SETTLED", state: "DELIVERED" });
    expect(of(second!)).toEqual({ token: second!.token, verdict: "STALE" });
    expect(of(third!)).toMatchObject({ verdict: "SETTLED", state: "PENDING" });
    expect(await readDelivery(database, second!.id)).toMatchObject({
      state: "LEASED",
      tries: [],
      event_state: "LEASED",
    });
  });

  it("J2 a report that was committed before writes nothing again", async () => {
    const endpoint = await registerOne(database);
    await endJob(database, endpoint);
    const lease = await claimOne(database);
    const report = delivered(lease);
    expect(await settleOne(report)).toMatchObject({ verdict: "SETTLED" });
    const before = await readDelivery(database, lease.id);
    expect(await settleOne(report)).toMatchObject({ verdict: "STALE" });
    expect((await readDelivery(database, lease.id)).tries).toEqual(before.tries);
  });
});

describe("renewDeliveries", () => {
  it("J2 renews what is named and held, and tells what was lost", async () => {
    const endpoint = await registerOne(database);
    await endJobs(database, endpoint, 3);
    const [first, second, third] = await claim(database, 3, 5);
    await expireLease(database, second!.id);
    const stale = { id: third!.id, token: first!.token };
    expect(await renewDeliveries(database.commands, [first!, second!, stale], 600)).toEqual(new Set([first!.token]));
    const rows = await database.commands<{ id: string; left: number }[]>`
      select id, extract(epoch from lease_until - clock_timestamp())::float8 as left from callback_deliveries
      where lease_token is not null`;
    const left = new Map(rows.map((row) => [row.id, row.left]));
    expect(left.get(first!.id)).toBeGreaterThan(500);
    expect(left.get(second!.id)).toBeLessThan(0);
    expect(left.get(third!.id)).toBeLessThan(6);
  });
});

describe("recoverDeliveries", () => {
  it("C2 an expired lease ends as an UNKNOWN try and is due again while the stored budget allows", async () => {
    const endpoint = await registerOne(database, { attemptBudget: 2 });
    await endJob(database, endpoint);
    const first = await claimOne(database);
    expect(await recoverDeliveries(database.commands, 10)).toEqual({ recovered: 0, requeued: 0 });
    await expireLease(database, first.id);
    expect(await recoverDeliveries(database.commands, 10)).toEqual({ recovered: 1, requeued: 1 });
    expect(await readDelivery(database, first.id)).toMatchObject({
      state: "PENDING",
      event_state: "PENDING",
      attempts_used: 1,
      tries: [{ outcome: "UNKNOWN", ordinal: 1, code: "WORKER_LOST", token: first.token }],
    });
    await makeDue(database);
    const second = await claimOne(database);
    expect(second).toMatchObject({ id: first.id, eventId: first.eventId, attemptsUsed: 2 });
    expect(second.token).not.toBe(first.token);
    expect(await settleOne(delivered(first))).toMatchObject({ verdict: "STALE" });
    await expireLease(database, second.id);
    expect(await recoverDeliveries(database.commands, 10)).toEqual({ recovered: 1, requeued: 0 });
    expect(await readDelivery(database, first.id)).toMatchObject({
      state: "DEAD_LETTER",
      event_reason: "BUDGET_SPENT",
      job_expires_in_ms: null,
      tries: [{ ordinal: 1 }, { ordinal: 2, outcome: "UNKNOWN" }],
    });
  });

  it("C3 a lost try of an endpoint that closed meanwhile ends with that reason", async () => {
    const endpoint = await registerOne(database);
    await endJob(database, endpoint);
    const lease = await claimOne(database);
    await deleteEndpoint(database.commands, { id: endpoint.id, callerId: null }, BY, { open: "CLOSE_OPEN" });
    await expireLease(database, lease.id);
    await recoverDeliveries(database.commands, 10);
    expect(await readDelivery(database, lease.id)).toMatchObject({
      state: "DEAD_LETTER",
      event_reason: "ENDPOINT_DELETED",
    });
  });

  it("keeps to its limit", async () => {
    const endpoint = await registerOne(database);
    await endJobs(database, endpoint, 3);
    for (const lease of await claim(database, 3)) await expireLease(database, lease.id);
    expect(await recoverDeliveries(database.commands, 2)).toMatchObject({ recovered: 2 });
    expect(await recoverDeliveries(database.commands, 2)).toMatchObject({ recovered: 1 });
  });
});

/**
 * Every command against a delivery in every state: only the moves of the machine's table happen, and each of them can.
 */
describe("the delivery machine", () => {
  type Prepared = { readonly id: string; readonly lease: DeliveryLease; readonly endpointId: string };
  const prepare = async (state: DeliveryState): Promise<Prepared> => {
    const endpoint = await registerOne(database, newEndpoint());
    const { eventId } = await endJob(database, endpoint);
    const id = await deliveryOf(database, eventId);
    const lease = await claimOne(database);
    if (state === "PENDING") await settle(refused(lease));
    if (state === "DELIVERED") await settle(delivered(lease));
    if (state === "DEAD_LETTER") await settle(refused(lease, { next: "FORBIDDEN" }));
    return { id, lease, endpointId: endpoint.id };
  };
  /** What the commands of the table do; none of them is asked whether it may. */
  const attempts: Record<string, (delivery: Prepared, to: DeliveryState) => Promise<unknown>> = {
    "claim-delivery": () => claim(database),
    "close-deliveries": ({ endpointId }) =>
      patchEndpoint(database.commands, { id: endpointId, callerId: null }, { disabledReason: "OPERATOR" }, BY),
    "settle-delivery": ({ lease }, to) => {
      if (to === "PENDING") return settle(refused(lease));
      return settle(to === "DELIVERED" ? delivered(lease) : refused(lease, { next: "FORBIDDEN" }));
    },
    "recover-delivery": async ({ id }, to) => {
      if (to === "DEAD_LETTER") {
        await database.commands`update callback_deliveries set attempt_budget = greatest(attempts_used, 1) where id = ${id}`;
      }
      await expireLease(database, id);
      await recoverDeliveries(database.commands, 100);
    },
  };

  for (const from of DELIVERY_STATES) {
    for (const to of DELIVERY_STATES) {
      const allowed: readonly string[] =
        (DELIVERY_TRANSITIONS[from] as Partial<Record<DeliveryState, readonly string[]>>)[to] ?? [];
      it(`C2 ${from} to ${to}: ${allowed.length === 0 ? "never" : allowed.join(", ")}`, async () => {
        for (const [name, attempt] of Object.entries(attempts)) {
          const delivery = await prepare(from);
          await attempt(delivery, to);
          const { state } = await readDelivery(database, delivery.id);
          if (from === to) {
            // Whatever a command did, it is a move of the table or none.
            const moves = Object.entries(DELIVERY_TRANSITIONS[from]) as [DeliveryState, readonly string[]][];
            const possible = moves.filter(([, commands]) => commands.includes(name)).map(([next]) => next);
            expect([from, ...possible]).toContain(state);
          } else if (allowed.includes(name)) {
            expect(`${name}: ${state}`).toBe(`${name}: ${to}`);
          } else {
            expect(`${name}: ${state}`).not.toBe(`${name}: ${to}`);
          }
        }
      });
    }
  }
});
