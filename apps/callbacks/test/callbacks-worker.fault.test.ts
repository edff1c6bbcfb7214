import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { recoverDeliveries } from "@keble-scraper/db/commands/callbacks";
import { createTestSignals, type ReceivedRequest, startTcpProxy, untilBlocked } from "@keble-scraper/testkit";
import { Webhook } from "standardwebhooks";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type CallbacksRig, isOver, openCallbacksRig, untilEvent } from "./callbacks-rig.ts";

let rig: CallbacksRig;
beforeAll(async () => {
  rig = await openCallbacksRig();
});
afterEach(() => rig.clear());
afterAll(() => rig[Symbol.asyncDispose]());

/** Runs a worker that kills itself at the point, until it has. */
async function dieAt(point: string): Promise<void> {
  const flags = ["--conditions=@keble-scraper/source", "--import", "tsx"];
  const script = join(import.meta.dirname, "callbacks-worker-child.ts");
  const child = spawn(process.execPath, [...flags, script, JSON.stringify(rig.env), point], { stdio: "inherit" });
  const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
  if (signal !== "SIGKILL") throw new Error(`the worker ended by itself (${code}) before ${point}`);
}

/** What maintenance does once the lease has run out. */
async function recover(): Promise<void> {
  await rig.database.commands`
    update callback_deliveries set lease_until = clock_timestamp() - interval '1 ms' where lease_token is not null`;
  await recoverDeliveries(rig.database.commands, 100);
}

/** Resolves when the database's clock shows a later second: timestamps are whole ones. */
async function untilSecondAfter(timestamp: number): Promise<void> {
  for (;;) {
    const [row] = await rig.database.commands<[{ now: number }]>`
      select floor(extract(epoch from clock_timestamp()))::float8 as now`;
    if (row.now > timestamp) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function verify(request: ReceivedRequest, secret: string): void {
  const headers = Object.fromEntries(
    ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => [name, request.header(name) ?? ""]),
  );
  new Webhook(secret).verify(request.body, headers, { jsonParse: false });
}

/**
 * The receiver has acted on the first request and the product has forgotten it: without the stable id it would act
 * twice, and without the recorded UNKNOWN try nobody could tell why it was asked again.
 */
test("C3 a worker killed between the answer and its commit: the same id and bytes again, signed anew, the first try UNKNOWN", async () => {
  const path = rig.path();
  const { name, secret } = await rig.register(path, { attemptBudget: 2 });
  const { eventId } = await rig.endJob(name);
  await dieAt("settling");
  expect(await rig.event(eventId)).toMatchObject({ state: "LEASED", deliveries: [{ tries: [] }] });
  await recover();
  await untilSecondAfter(Number(rig.received(path)[0]!.header("webhook-timestamp")));
  await rig.startWorker();
  const event = await untilEvent(rig, eventId, isOver);
  expect(event).toMatchObject({
    state: "DELIVERED",
    deliveries: [
      {
        attemptsUsed: 2,
        tries: [
          { ordinal: 1, outcome: "UNKNOWN", failure: { code: "WORKER_LOST" } },
          { ordinal: 2, outcome: "SUCCEEDED", failure: null },
        ],
      },
    ],
  });
  const [first, again] = rig.received(path);
  for (const request of [first!, again!]) verify(request, secret);
  expect(again!.header("webhook-id")).toBe(first!.header("webhook-id"));
  expect(again!.body.equals(first!.body)).toBe(true);
  expect(Number(again!.header("webhook-timestamp"))).toBeGreaterThan(Number(first!.header("webhook-timestamp")));
  expect(again!.header("webhook-signature")).not.toBe(first!.header("webhook-signature"));
  expect(rig.received(path)).toHaveLength(2);
});

test("C2 a delivery that kills its worker ends on its own budget", async () => {
  const path = rig.path();
  const { name } = await rig.register(path, { attemptBudget: 1 });
  const { eventId, jobId } = await rig.endJob(name);
  await dieAt("settling");
  await recover();
  expect(await rig.event(eventId)).toMatchObject({
    state: "DEAD_LETTER",
    deadLetterReason: "BUDGET_SPENT",
    deliveries: [{ attemptsUsed: 1, tries: [{ outcome: "UNKNOWN" }] }],
  });
  const [job] = await rig.database.commands`select status, expires_at from jobs where id = ${jobId}`;
  expect(job).toMatchObject({ status: "CANCELLED", expires_at: null });
});

/** A worker whose Postgres is behind a proxy, held between the answer and its settle. */
async function answeredBehindProxy(path: string) {
  const { name } = await rig.register(path);
  const { eventId } = await rig.endJob(name);
  const url = rig.env["SCRAPER_DATABASE_URL"]!;
  const proxy = await startTcpProxy({ target: url });
  const signals = createTestSignals();
  const settling = signals.hold("settling");
  await rig.startWorker({ signals }, { SCRAPER_DATABASE_URL: proxy.through(url) });
  await settling.held;
  return { eventId, proxy, signals, settling };
}

test("C3 a first try whose bytes an outage kept from being stored is spent on nothing: its count goes back", async () => {
  const path = rig.path();
  const { name } = await rig.register(path, { attemptBudget: 1 });
  const { eventId } = await rig.endJob(name);
  const signals = createTestSignals();
  // Reading the job of the claimed delivery waits for this lock, until its connection is ended as a shutdown ends it.
  await rig.database.commands.begin(async (tx) => {
    await tx`lock table jobs in access exclusive mode`;
    await rig.startWorker({ signals });
    await untilBlocked(rig.database.commands, { application: "keble-worker-callbacks" });
    await tx`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'keble-worker-callbacks' and wait_event_type = 'Lock'`;
    expect(await signals.reached("settling")).toMatchObject({ outcome: "UNSENT" });
  });
  expect(await signals.reached("settled")).toMatchObject({ verdict: "SETTLED", state: "PENDING" });
  expect(await untilEvent(rig, eventId, isOver)).toMatchObject({
    state: "DELIVERED",
    deliveries: [{ attemptsUsed: 1, tries: [{ ordinal: 1, outcome: "SUCCEEDED" }] }],
  });
  expect(rig.received(path)).toHaveLength(1);
});

test("J2 an answer that came while Postgres was away is settled once it is back, without a second request", async () => {
  const path = rig.path();
  const { eventId, proxy, signals, settling } = await answeredBehindProxy(path);
  await using _proxy = proxy;
  await proxy.refuse();
  settling.release();
  await proxy.restore();
  expect(await signals.reached("settled")).toMatchObject({ verdict: "SETTLED", state: "DELIVERED" });
  expect(await rig.event(eventId)).toMatchObject({
    state: "DELIVERED",
    deliveries: [{ attemptsUsed: 1, tries: [{ outcome: "SUCCEEDED" }] }],
  });
  expect(rig.received(path)).toHaveLength(1);
  await rig.clear();
});

test("J2 a commit whose answer was lost is not made twice: the report is sent again and is stale", async () => {
  const path = rig.path();
  const { eventId, proxy, signals, settling } = await answeredBehindProxy(path);
  await using _proxy = proxy;
  // The settle is on its way and waits for the event's row, which we hold, when its answer's way is cut.
  await rig.database.commands.begin(async (tx) => {
    await tx`select 1 from callback_events where id = ${eventId} for update`;
    settling.release();
    await untilBlocked(rig.database.commands, { application: "keble-worker-callbacks" });
    proxy.blackHole("ANSWERS");
  });
  await untilEvent(rig, eventId, isOver);
  proxy.cut();
  await proxy.restore();
  expect(await signals.reached("settled")).toMatchObject({ verdict: "STALE" });
  expect(await rig.event(eventId)).toMatchObject({
    state: "DELIVERED",
    deliveries: [{ tries: [{ outcome: "SUCCEEDED" }] }],
  });
  expect(rig.received(path)).toHaveLength(1);
  await rig.clear();
});
