import { createDatabase } from "@keble-scraper/db";
import { claimJobs, quarantineRoute, releaseRoute, reserveCost } from "@keble-scraper/db/commands/fetching";
import { createTestSignals, page, startConnectProxy, startTcpProxy } from "@keble-scraper/testkit";
import { expect, test } from "vitest";
import { type FetchRig, openFetchRig, untilEnded } from "./worker-fixtures.ts";

const BY = { actor: "test", requestId: null };
const ACCOUNT = { userName: "user", password: "password" };
const CAP = { costCapMicros: 10_000_000 };
const BOOKING = { hostKey: "127.0.0.1", hostAtMs: 1, route: "DATACENTER", routeAtMs: 2 };
const NO_CAPS = { routeDay: null, routeMonth: null, callerDay: null, callerMonth: null };

function quarantine(rig: FetchRig, route: "DATACENTER" | "RESIDENTIAL") {
  const quarantined = { route, reason: "OPERATOR", nativeCode: null, note: null, forMs: null, by: BY };
  return quarantineRoute(rig.database.commands, quarantined);
}

/** A rig whose DATACENTER leads to its origin. */
async function openProxyRig(env: Record<string, string> = {}) {
  const rig = await openFetchRig();
  const proxy = await startConnectProxy({ to: rig.origin.port, credentials: ACCOUNT });
  rig.origin.on("/page", page("page"));
  return {
    rig,
    env: { SCRAPER_DATACENTER_PROXY_URL: proxy.url(), ...env },
    async [Symbol.asyncDispose]() {
      await rig[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

/** Takes all of DATACENTER's money out with an attempt that goes on running. */
async function reserveAll(rig: FetchRig, micros: number): Promise<void> {
  await rig.submit("/page", { routes: ["DATACENTER"], ...CAP }, "other");
  const claim = { transport: "HTTP", slots: 1, leaseSeconds: 3_600, afterCaller: "", of: "TRUSTED" } as const;
  const { leases } = await claimJobs(rig.database.commands, { ...claim, callerRunningMax: null });
  const [lease] = leases;
  if (lease === undefined) throw new Error("nothing to claim");
  const { id, token, route } = lease;
  expect(await reserveCost(rig.database.commands, { id, token, route, micros, caps: NO_CAPS })).toBe("RESERVED");
}

async function rowOf(rig: FetchRig, id: string) {
  const [row] = await rig.database.commands`
    select status, attempts_used, attempt_number, booking, reserved_micros from jobs where id = ${id}`;
  return row;
}

const isOf = (id: string) => (detail: unknown) => (detail as { id: string }).id === id;

test("W1 a job that waits for money keeps its booked times, and loses no attempt when Postgres is away as its wait ends", async () => {
  await using made = await openProxyRig({ SCRAPER_DATACENTER_DAILY_CAP_MICROS: "10000" });
  const { rig, env } = made;
  await reserveAll(rig, 9_000);
  const { hostname, port } = new URL(rig.settings.database.url);
  await using database = await startTcpProxy({ target: { host: hostname, port: Number(port) } });
  const id = await rig.submit("/page", { routes: ["DATACENTER"], ...CAP });
  await rig.database.commands`update jobs set booking = ${rig.database.commands.json(BOOKING)} where id = ${id}`;
  const signals = createTestSignals();
  using waits = signals.hold("run.ended", isOf(id));
  await rig.startWorker({
    signals,
    env: { ...env, SCRAPER_DATABASE_URL: database.through(rig.settings.database.url) },
  });
  await waits.held;
  await database.refuse();
  waits.release();
  const probe = createDatabase({
    url: database.through(rig.settings.database.url),
    applicationName: "keble-probe",
    commandConnections: 1,
    readConnections: 1,
    statementTimeoutMs: 1_000,
  });
  // Each of them has had the time of the worker's own first try.
  for (let tries = 0; tries < 3; tries += 1) await expect(probe.commands`select 1`.execute()).rejects.toThrow();
  await probe.stop(performance.now());
  await database.restore();
  await signals.reached("finished", isOf(id));
  const row = await rowOf(rig, id);
  expect(row).toMatchObject({ attempts_used: row?.["status"] === "RUNNING" ? 1 : 0, booking: BOOKING });
  expect(await rig.ledger(id)).toEqual([]);
});

test("W4 a job whose own route is quarantined waits for it when the other one is not there any more", async () => {
  await using made = await openProxyRig();
  const { rig, env } = made;
  await quarantine(rig, "DATACENTER");
  const signals = createTestSignals();
  const id = await rig.submit("/page", { routes: ["DATACENTER", "UNLOCKER"], ...CAP });
  await rig.startWorker({ signals, env });
  await signals.reached("finished", isOf(id));
  expect(await rowOf(rig, id)).toMatchObject({ status: "QUEUED", attempts_used: 0, attempt_number: 0 });
  await releaseRoute(rig.database.commands, { route: "DATACENTER", by: BY });
  await rig.database.commands`update jobs set due_at = clock_timestamp() where id = ${id}`;
  expect(await untilEnded(rig, id)).toMatchObject({ status: "SUCCEEDED", result: { route: "DATACENTER" } });
});

test("W3 a job whose own route is quarantined passes a route that its money does not reach over, while it lists another", async () => {
  await using made = await openProxyRig();
  const { rig, env } = made;
  await quarantine(rig, "DATACENTER");
  const id = await rig.submit("/page", { routes: ["DATACENTER", "UNLOCKER", "DIRECT"], costCapMicros: 1 });
  await rig.startWorker({
    env: { ...env, SCRAPER_UNLOCKER_API_KEY: "key-of-the-test", SCRAPER_UNLOCKER_ZONE: "zone" },
  });
  expect(await untilEnded(rig, id)).toMatchObject({
    status: "SUCCEEDED",
    result: { route: "DIRECT" },
    limits: { attemptsUsed: 1, costMicros: 0 },
  });
  expect(await rig.ledger(id)).toEqual(["SUCCEEDED"]);
});
