import { CallbackEndpoint, CallbackEventDetail, CallbackEvent } from "@keble-scraper/contract";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  closeStrandedDeliveries,
  deleteEndpoint,
  patchEndpoint,
  registerEndpoint,
  settleDeliveries,
} from "../src/commands/callbacks/index.ts";
import { cancelJob } from "../src/commands/intake/index.ts";
import { findEndpoint, findEvent, listEndpoints, listEvents, parseCursor } from "../src/index.ts";
import {
  BY,
  claim,
  claimOne,
  CLOCKS,
  delivered,
  deliveryOf,
  endJob,
  endJobs,
  newEndpoint,
  readDelivery,
  refused,
  registerOne,
} from "./callback-fixtures.ts";
import { openTestDatabase, OPTIONS, submitOne } from "./job-fixtures.ts";

/** Overflows the audit row's clock, so that it can't be written. */
const NO_AUDIT = 2_000_000_000;

let database: Awaited<ReturnType<typeof openTestDatabase>>;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

const audit = async (id: string) => {
  const rows = await database.commands<{ action: string; actor: string; caller_id: string; details: object }[]>`
    select action, actor, caller_id, details from audit_events where subject = ${`callback-endpoint:${id}`} order by id`;
  return rows.map((row) => ({ ...row }));
};
const own = (id: string) => ({ id, callerId: "acme" });
const disable = (id: string) => patchEndpoint(database.commands, own(id), { disabledReason: "CALLER" }, BY);
const enable = (id: string) => patchEndpoint(database.commands, own(id), { disabledReason: null }, BY);
const stateOf = async (eventId: string) => readDelivery(database, await deliveryOf(database, eventId));

describe("registerEndpoint", () => {
  it("O5 makes an endpoint with its audit row, which holds neither secret nor URL", async () => {
    const endpoint = newEndpoint({ events: ["job.failed"] });
    const answer = await registerEndpoint(database.commands, endpoint, BY);
    expect(answer).toMatchObject({ ok: true, value: { id: endpoint.id, enabled: true, events: ["job.failed"] } });
    expect(await findEndpoint(database.reads, endpoint.id, "acme")).toEqual(answer.ok && answer.value);
    expect(await audit(endpoint.id)).toEqual([
      {
        action: "callback-endpoint.registered",
        actor: "system:test",
        caller_id: "acme",
        details: { name: endpoint.name, keyId: "0a1b2c3d" },
      },
    ]);
  });

  it("O5 makes no endpoint whose audit row can't be written", async () => {
    const endpoint = newEndpoint();
    await expect(registerEndpoint(database.commands, endpoint, BY, NO_AUDIT)).rejects.toMatchObject({ code: "22008" });
    expect(await findEndpoint(database.reads, endpoint.id, null)).toBeNull();
  });

  it("lets one of many win a name, and another caller have the same", async () => {
    const answers = await Promise.all(
      [1, 2, 3, 4, 5].map(() => registerEndpoint(database.commands, newEndpoint({ name: "contested" }), BY)),
    );
    expect(answers.filter((answer) => answer.ok)).toHaveLength(1);
    for (const answer of answers) if (!answer.ok) expect(answer.failure.code).toBe("CONFLICT");
    const other = await registerEndpoint(database.commands, newEndpoint({ name: "contested", callerId: "other" }), BY);
    expect(other.ok).toBe(true);
  });
});

describe("patchEndpoint", () => {
  it("changes what is named and keeps the rest, audited by kind of change", async () => {
    const { id, name } = await registerOne(database);
    const url = "https://hooks.example.com/other?token=t0p";
    const answer = await patchEndpoint(database.commands, own(id), { url, events: ["job.succeeded"] }, BY);
    expect(answer).toMatchObject({ ok: true, value: { id, name, url, events: ["job.succeeded"], enabled: true } });
    const both = await patchEndpoint(
      database.commands,
      own(id),
      { events: ["job.failed"], disabledReason: "OPERATOR" },
      BY,
    );
    expect(both).toMatchObject({ ok: true, value: { url, enabled: false, disabledReason: "OPERATOR" } });
    expect(await disable(id)).toMatchObject({ ok: true, value: { disabledReason: "OPERATOR" } });
    expect(await enable(id)).toMatchObject({ ok: true, value: { enabled: true, disabledReason: null } });
    expect(await enable(id)).toMatchObject({ ok: true, value: { enabled: true } });
    const rows = await audit(id);
    expect(rows.slice(1).map(({ action, details }) => ({ action, details }))).toEqual([
      { action: "callback-endpoint.changed", details: { fields: "url events" } },
      { action: "callback-endpoint.changed", details: { fields: "events" } },
      { action: "callback-endpoint.disabled", details: { reason: "OPERATOR" } },
      { action: "callback-endpoint.enabled", details: {} },
    ]);
    expect(JSON.stringify(rows)).not.toContain("t0p");
  });

  it("O5 changes nothing when its audit row can't be written", async () => {
    const { id } = await registerOne(database);
    const patch = { disabledReason: "CALLER" as const };
    const options = { retentionDays: NO_AUDIT };
    await expect(patchEndpoint(database.commands, own(id), patch, BY, options)).rejects.toMatchObject({
      code: "22008",
    });
    expect(await findEndpoint(database.reads, id, null)).toMatchObject({ enabled: true });
  });

  it("does not find another caller's endpoint, and finds any for an operator", async () => {
    const { id } = await registerOne(database);
    const patch = { events: ["job.failed" as const] };
    const foreign = await patchEndpoint(database.commands, { id, callerId: "other" }, patch, BY);
    expect(foreign).toMatchObject({ ok: false, failure: { code: "NOT_FOUND" } });
    expect(await patchEndpoint(database.commands, { id, callerId: null }, patch, BY)).toMatchObject({ ok: true });
  });
});

describe("the event of a job", () => {
  const eventsOf = (jobId: string) => database.commands<{ state: string; deliveries: number }[]>`
    select e.state, (select count(*)::int from callback_deliveries d where d.event_id = e.id) as deliveries
    from callback_events e where e.job_id = ${jobId}`;

  it("C1 commits once with the job's end, however many end it, and not at all without it", async () => {
    const endpoint = await registerOne(database);
    const jobId = await submitOne(database, { callbackEndpoint: endpoint.name });
    const undone = database.commands.begin(async (tx) => {
      await cancelJob(tx, { id: jobId, callerId: null }, OPTIONS);
      throw new Error("undone");
    });
    await expect(undone).rejects.toThrow("undone");
    expect(await eventsOf(jobId)).toHaveLength(0);
    await Promise.all([1, 2, 3, 4, 5].map(() => cancelJob(database.commands, { id: jobId, callerId: null }, OPTIONS)));
    expect((await eventsOf(jobId)).map((row) => ({ ...row }))).toEqual([{ state: "PENDING", deliveries: 1 }]);
    await deleteEndpoint(database.commands, own(endpoint.id), BY, { open: "CLOSE_OPEN" });
  });

  it("C1 is not made when the endpoint's filter excludes its type: the job gets its expiry at its end", async () => {
    const endpoint = await registerOne(database, { events: ["job.succeeded", "job.failed"] });
    const jobId = await submitOne(database, { callbackEndpoint: endpoint.name });
    await cancelJob(database.commands, { id: jobId, callerId: null }, OPTIONS);
    expect(await eventsOf(jobId)).toHaveLength(0);
    const [job] = await database.commands`select expires_at is not null as expires from jobs where id = ${jobId}`;
    expect(job).toMatchObject({ expires: true });
  });
});

describe("closing deliveries", () => {
  it("C3 disabling ends waiting deliveries without a try, and leaves other endpoints' alone", async () => {
    const [closed, open] = [await registerOne(database), await registerOne(database)];
    const events = [await endJob(database, closed), await endJob(database, closed)];
    const other = await endJob(database, open);
    await disable(closed.id);
    for (const { eventId } of events) {
      expect(await stateOf(eventId)).toMatchObject({
        state: "DEAD_LETTER",
        dead_letter_reason: "ENDPOINT_DISABLED",
        event_state: "DEAD_LETTER",
        event_reason: "ENDPOINT_DISABLED",
        attempts_used: 0,
        tries: [],
        job_status: "CANCELLED",
        job_expires_in_ms: null,
      });
    }
    expect(await stateOf(other.eventId)).toMatchObject({ state: "PENDING" });
    await deleteEndpoint(database.commands, own(open.id), BY, { open: "CLOSE_OPEN" });
  });

  it("C3 an event of an endpoint that is disabled already begins as a dead letter", async () => {
    const endpoint = await registerOne(database);
    await disable(endpoint.id);
    const { eventId } = await endJob(database, endpoint);
    expect(await stateOf(eventId)).toMatchObject({ state: "DEAD_LETTER", event_reason: "ENDPOINT_DISABLED" });
  });

  it("C3 a job that ends just while its endpoint is disabled leaves no event open: the sweep ends it", async () => {
    const endpoint = await registerOne(database);
    const jobId = await submitOne(database, { callbackEndpoint: endpoint.name });
    let eventId = "";
    // The job's end has read the endpoint as open and has not committed when the endpoint is disabled.
    await database.commands.begin(async (tx) => {
      const ended = await cancelJob(tx, { id: jobId, callerId: null }, OPTIONS);
      eventId = ended!.eventId!;
      await disable(endpoint.id);
    });
    expect(await stateOf(eventId)).toMatchObject({ state: "PENDING" });
    expect(await claim(database)).toEqual([]);
    expect(await closeStrandedDeliveries(database.commands, 100)).toBe(1);
    expect(await stateOf(eventId)).toMatchObject({
      state: "DEAD_LETTER",
      dead_letter_reason: "ENDPOINT_DISABLED",
      event_state: "DEAD_LETTER",
      attempts_used: 0,
    });
    expect(await closeStrandedDeliveries(database.commands, 100)).toBe(0);
  });

  it("C3 jobs that end while their endpoint is disabled leave nothing open once the sweep has passed", async () => {
    const endpoint = await registerOne(database);
    const jobs: string[] = [];
    for (let made = 0; made < 40; made += 1) jobs.push(await submitOne(database, { callbackEndpoint: endpoint.name }));
    const end = (id: string) => cancelJob(database.commands, { id, callerId: null }, OPTIONS);
    await Promise.all([
      ...jobs.slice(0, 20).map(end),
      disable(endpoint.id),
      ...jobs.slice(20).map(end),
      closeStrandedDeliveries(database.commands, 100),
    ]);
    await closeStrandedDeliveries(database.commands, 100);
    const rows = await database.commands<{ states: string; count: number }[]>`
      select e.state || ' ' || d.state || ' ' || d.dead_letter_reason || ' ' || d.attempts_used as states, count(*)::int as count
      from callback_events e join callback_deliveries d on d.event_id = e.id
      where e.job_id = any(${jobs}) group by 1`;
    expect(rows.map((row) => ({ ...row }))).toEqual([
      { states: "DEAD_LETTER DEAD_LETTER ENDPOINT_DISABLED 0", count: 40 },
    ]);
  });

  it("keeps the sweep within its limit and lets it go on", async () => {
    const endpoints = [await registerOne(database), await registerOne(database)];
    for (const endpoint of endpoints) await endJobs(database, endpoint, 3);
    await database.commands`
      update callback_endpoints set disabled_at = clock_timestamp(), disabled_reason = 'OPERATOR'
      where id = any(${endpoints.map((endpoint) => endpoint.id)})`;
    expect(await closeStrandedDeliveries(database.commands, 4)).toBe(4);
    expect(await closeStrandedDeliveries(database.commands, 4)).toBe(2);
  });

  it("sends nothing that waited when an endpoint is enabled again", async () => {
    const endpoint = await registerOne(database);
    const { eventId } = await endJob(database, endpoint);
    // A delivery that the disable did not see.
    await database.commands`
      update callback_endpoints set disabled_at = clock_timestamp(), disabled_reason = 'GONE' where id = ${endpoint.id}`;
    await enable(endpoint.id);
    expect(await stateOf(eventId)).toMatchObject({ state: "DEAD_LETTER", event_reason: "ENDPOINT_DISABLED" });
    expect(await claim(database)).toEqual([]);
    const later = await endJob(database, endpoint);
    const lease = await claimOne(database);
    expect(lease.eventId).toBe(later.eventId);
    await settleDeliveries(database.commands, [delivered(lease)], CLOCKS);
  });

  it("C3 enabling an endpoint ends no more at once than its bound, and sends nothing that waited however much it was", async () => {
    const endpoint = await registerOne(database);
    await endJobs(database, endpoint, 5);
    await database.commands`
      update callback_endpoints set disabled_at = clock_timestamp(), disabled_reason = 'GONE' where id = ${endpoint.id}`;
    const bounded = () =>
      patchEndpoint(database.commands, own(endpoint.id), { disabledReason: null }, BY, { closedMax: 2 });
    const waiting = async () => {
      const rows = await database.commands`
        select 1 from callback_deliveries where endpoint_id = ${endpoint.id} and state = 'PENDING'`;
      return rows.length;
    };
    const later = { ok: false, failure: { code: "CONFLICT", disposition: "RETRY" } };
    expect(await bounded()).toMatchObject(later);
    expect(await waiting()).toBe(3);
    expect(await claim(database)).toEqual([]);
    expect(await closeStrandedDeliveries(database.commands, 1)).toBe(1);
    expect(await bounded()).toMatchObject(later);
    expect(await bounded()).toMatchObject({ ok: true, value: { enabled: true } });
    expect(await claim(database)).toEqual([]);
    expect((await audit(endpoint.id)).map(({ action }) => action)).toEqual([
      "callback-endpoint.registered",
      "callback-endpoint.enabled",
    ]);
  });

  it("a try that is under way while its endpoint closes ends at its settle: delivered, or dead with the reason", async () => {
    const endpoint = await registerOne(database);
    await endJobs(database, endpoint, 2);
    const [first, second] = await claim(database, 2);
    await disable(endpoint.id);
    expect(await readDelivery(database, first!.id)).toMatchObject({ state: "LEASED" });
    await settleDeliveries(database.commands, [refused(first!), delivered(second!)], CLOCKS);
    expect(await readDelivery(database, first!.id)).toMatchObject({
      state: "DEAD_LETTER",
      dead_letter_reason: "ENDPOINT_DISABLED",
      event_reason: "ENDPOINT_DISABLED",
      tries: [{ outcome: "FAILED", ordinal: 1 }],
    });
    expect(await readDelivery(database, second!.id)).toMatchObject({ state: "DELIVERED", event_state: "DELIVERED" });
  });
});

describe("deleteEndpoint", () => {
  it("refuses while a delivery waits or is under way, and not when all ended", async () => {
    const endpoint = await registerOne(database);
    await endJob(database, endpoint);
    const refuse = { open: "REFUSE_OPEN" as const };
    expect(await deleteEndpoint(database.commands, own(endpoint.id), BY, refuse)).toMatchObject({
      ok: false,
      failure: { code: "CONFLICT" },
    });
    const lease = await claimOne(database);
    expect(await deleteEndpoint(database.commands, own(endpoint.id), BY, refuse)).toMatchObject({ ok: false });
    expect(await findEndpoint(database.reads, endpoint.id, null)).not.toBeNull();
    await settleDeliveries(database.commands, [delivered(lease)], CLOCKS);
    expect(await deleteEndpoint(database.commands, own(endpoint.id), BY, refuse)).toEqual({ ok: true, value: null });
  });

  it("C3 by force ends what waits, frees the name, drops the secrets and is audited", async () => {
    const endpoint = await registerOne(database);
    const { eventId } = await endJob(database, endpoint);
    const force = { open: "CLOSE_OPEN" as const };
    expect(await deleteEndpoint(database.commands, own(endpoint.id), BY, force)).toMatchObject({ ok: true });
    expect(await stateOf(eventId)).toMatchObject({ state: "DEAD_LETTER", event_reason: "ENDPOINT_DELETED" });
    expect(await findEndpoint(database.reads, endpoint.id, null)).toBeNull();
    const secrets = await database.commands`select 1 from callback_secrets where endpoint_id = ${endpoint.id}`;
    expect(secrets).toHaveLength(0);
    expect((await audit(endpoint.id)).map((row) => row.action)).toEqual([
      "callback-endpoint.registered",
      "callback-endpoint.deleted",
    ]);
    expect((await registerEndpoint(database.commands, newEndpoint({ name: endpoint.name }), BY)).ok).toBe(true);
    expect(await deleteEndpoint(database.commands, own(endpoint.id), BY, force)).toMatchObject({
      ok: false,
      failure: { code: "NOT_FOUND" },
    });
  });

  it("O5 deletes nothing when its audit row can't be written", async () => {
    const endpoint = await registerOne(database);
    const options = { open: "CLOSE_OPEN" as const, retentionDays: NO_AUDIT };
    await expect(deleteEndpoint(database.commands, own(endpoint.id), BY, options)).rejects.toMatchObject({
      code: "22008",
    });
    expect(await findEndpoint(database.reads, endpoint.id, null)).not.toBeNull();
  });
});

describe("reads", () => {
  it("pages a caller's endpoints newest first, by name too, without deleted ones", async () => {
    const made = [];
    for (let count = 0; count < 5; count += 1) made.push(await registerOne(database, { callerId: "reader" }));
    await deleteEndpoint(database.commands, { id: made[2]!.id, callerId: "reader" }, BY, { open: "REFUSE_OPEN" });
    const expected = [made[4]!, made[3]!, made[1]!, made[0]!].map((endpoint) => endpoint.id);
    const seen: string[] = [];
    for (let afterId: string | null = null; ;) {
      const page = await listEndpoints(database.reads, { callerId: "reader", name: null, afterId, limit: 3 });
      for (const item of page.items) expect(CallbackEndpoint.parse(item)).toEqual(item);
      seen.push(...page.items.map((item) => item.id));
      if (page.nextCursor === null) break;
      afterId = parseCursor(page.nextCursor);
    }
    expect(seen).toEqual(expected);
    const named = { callerId: "reader", name: made[0]!.name, afterId: null, limit: 3 };
    expect((await listEndpoints(database.reads, named)).items.map((item) => item.id)).toEqual([made[0]!.id]);
    expect(await findEndpoint(database.reads, made[0]!.id, "acme")).toBeNull();
  });

  it("shows an event with its deliveries and tries, and lists events by state and endpoint", async () => {
    const endpoint = await registerOne(database, { callerId: "viewer" });
    const first = await endJob(database, endpoint);
    const lease = await claimOne(database);
    await settleDeliveries(database.commands, [refused(lease)], CLOCKS);
    const second = await endJob(database, endpoint);
    const detail = await findEvent(database.reads, first.eventId, "viewer");
    expect(CallbackEventDetail.parse(detail)).toEqual(detail);
    expect(detail).toMatchObject({
      jobId: first.jobId,
      endpoint: endpoint.name,
      state: "PENDING",
      finishedAt: null,
      deliveries: [{ ordinal: 1, trigger: "FIRST", attemptsUsed: 1, tries: [{ outcome: "FAILED", httpStatus: 500 }] }],
    });
    expect(await findEvent(database.reads, first.eventId, "acme")).toBeNull();
    const all = { callerId: "viewer", state: null, endpointId: null, afterId: null, limit: 1 };
    const page = await listEvents(database.reads, all);
    expect(page.items.map((item) => CallbackEvent.parse(item).id)).toEqual([second.eventId]);
    const rest = await listEvents(database.reads, { ...all, afterId: parseCursor(page.nextCursor!) });
    expect(rest).toMatchObject({ items: [{ id: first.eventId }], nextCursor: null });
    expect((await listEvents(database.reads, { ...all, state: "DELIVERED" })).items).toEqual([]);
    expect((await listEvents(database.reads, { ...all, endpointId: endpoint.id })).items).toHaveLength(1);
    await deleteEndpoint(database.commands, { id: endpoint.id, callerId: null }, BY, { open: "CLOSE_OPEN" });
    expect(await findEvent(database.reads, first.eventId, "viewer")).toMatchObject({
      endpoint: endpoint.name,
      state: "DEAD_LETTER",
      deadLetterReason: "ENDPOINT_DELETED",
    });
  });
});
