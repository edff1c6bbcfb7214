import { afterAll, expect, test } from "vitest";
import { raiseAdmissionClock, takeAdmission } from "../src/commands/fetching/index.ts";
import { submitJobs } from "../src/commands/intake/index.ts";
import { countInFlightByRoute } from "../src/queries/count-in-flight-by-route.ts";
import { countRunningBefore } from "../src/queries/count-running-before.ts";
import { countWaitingJobs } from "../src/queries/count-waiting-jobs.ts";
import { claim, newJob, openTestDatabase } from "./job-fixtures.ts";

const database = await openTestDatabase();
const sql = database.commands;
afterAll(() => database[Symbol.asyncDispose]());

const step = (key: string, overrides: Partial<Parameters<typeof takeAdmission>[1]> = {}) =>
  takeAdmission(sql, { key, intervalMs: 100, waitMs: 5_000, bookedAtMs: null, ...overrides });

async function nextAt(key: string): Promise<number | undefined> {
  const [row] = await sql<{ next_at_ms: number }[]>`select next_at_ms from admission_clocks where key = ${key}`;
  return row?.next_at_ms;
}

test("W1 sixty steps at once, on a clock that is not there yet, book sixty times an interval apart", async () => {
  const steps = await Promise.all(Array.from({ length: 60 }, () => step("route:A", { waitMs: 60_000 })));
  const times = steps.map((row) => row.atMs).toSorted((one, other) => one - other);
  expect(steps.every((row) => row.isBooked)).toBe(true);
  for (const [index, at] of times.entries()) {
    if (index > 0) expect(at - (times[index - 1] ?? 0)).toBeGreaterThan(99.9);
  }
  expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeLessThan(6_500);
});

test("W1 a step past the wait books nothing, moves no clock and says where it stands", async () => {
  await step("route:B", { intervalMs: 30_000 });
  const before = await nextAt("route:B");
  const refused = await Promise.all(Array.from({ length: 20 }, () => step("route:B")));
  for (const row of refused) {
    expect(row.isBooked).toBe(false);
    expect(row.atMs).toBe(before);
    expect(row.atMs - row.nowMs).toBeGreaterThan(25_000);
  }
  expect(await nextAt("route:B")).toBe(before);
});

test("W1 a booked time is answered again and books nothing, and is void once the wait has passed", async () => {
  const booked = await step("route:C", { intervalMs: 1_000 });
  const before = await nextAt("route:C");
  expect(await step("route:C", { intervalMs: 1_000, bookedAtMs: booked.atMs })).toMatchObject({
    atMs: booked.atMs,
    isBooked: true,
  });
  expect(await nextAt("route:C")).toBe(before);
  const anew = await step("route:C", { intervalMs: 1_000, bookedAtMs: booked.atMs - 6_000 });
  expect(anew.isBooked).toBe(true);
  expect(anew.atMs).toBeGreaterThanOrEqual(before ?? 0);
  expect(await nextAt("route:C")).toBeCloseTo(anew.atMs + 1_000, 2);
});

test("W2 a clock that was idle gives no burst: its past is worth nothing", async () => {
  await sql`insert into admission_clocks values ('host:idle', 1000)`;
  const [first, second] = [await step("host:idle"), await step("host:idle")];
  expect(first.atMs).toBeLessThanOrEqual(first.nowMs + 1);
  expect(first.nowMs - first.atMs).toBeLessThan(5_000);
  expect(second.atMs - first.atMs).toBeGreaterThan(99.9);
});

test("W1 a clock that was lost goes on behind what was seen, and one that is ahead stays", async () => {
  await raiseAdmissionClock(sql, { key: "host:lost", aheadMs: 2_000, slackMs: 500 });
  const anew = await step("host:lost");
  expect(anew.atMs - anew.nowMs).toBeGreaterThan(2_300);
  const before = await nextAt("host:lost");
  await raiseAdmissionClock(sql, { key: "host:lost", aheadMs: 1_000, slackMs: 500 });
  expect(await nextAt("host:lost")).toBe(before);
  await raiseAdmissionClock(sql, { key: "host:lost", aheadMs: 9_000, slackMs: 500 });
  expect((await nextAt("host:lost")) ?? 0).toBeGreaterThan((before ?? 0) + 5_000);
});

test("W2 while Redis is away a slot is one's place among the running jobs of a host and of a route", async () => {
  const jobs = Array.from({ length: 6 }, (_, index) =>
    newJob({
      hostKey: index < 4 ? "a.example.com" : "b.example.com",
      routes: [index % 2 === 0 ? "DIRECT" : "UNLOCKER"],
    }),
  );
  await submitJobs(sql, { callerId: "acme", jobs, queuedMax: null });
  await sql`update jobs set due_at = due_at - interval '1 s'`;
  const leases = await claim(database, 6);
  expect(leases).toHaveLength(6);
  const places = async (by: "HOST" | "ROUTE", key: string, of: typeof leases) =>
    (await Promise.all(of.map(({ token }) => countRunningBefore(sql, { token, by, key })))).toSorted(
      (one, other) => one - other,
    );
  const ofHost = leases.filter((lease) => lease.hostKey === "a.example.com");
  expect(await places("HOST", "a.example.com", ofHost)).toEqual([0, 1, 2, 3]);
  const ofRoute = leases.filter((lease) => lease.route === "UNLOCKER");
  expect(await places("ROUTE", "UNLOCKER", ofRoute)).toEqual([0, 1, 2]);
  expect(await countRunningBefore(sql, { token: crypto.randomUUID(), by: "HOST", key: "a.example.com" })).toBe(4);
  expect(await countInFlightByRoute(sql)).toEqual(
    new Map([
      ["DIRECT", 3],
      ["UNLOCKER", 3],
    ]),
  );
  await sql`update jobs set lease_until = clock_timestamp() - interval '1 ms'`;
  expect(await countRunningBefore(sql, { token: crypto.randomUUID(), by: "HOST", key: "a.example.com" })).toBe(0);
});

test("waiting jobs are counted by their host and by their next route, to a bound", async () => {
  const jobs = Array.from({ length: 900 }, (_, index) =>
    newJob({ hostKey: `${index % 3}.example.com`, routes: ["DATACENTER", "UNLOCKER"] }),
  );
  await submitJobs(sql, { callerId: "acme", jobs, queuedMax: null });
  await sql`update jobs set route_index = 1 where host_key = '0.example.com'`;
  expect(await countWaitingJobs(sql, { by: "HOST", key: "1.example.com" })).toBe(300);
  expect(await countWaitingJobs(sql, { by: "ROUTE", key: "UNLOCKER" })).toBe(300);
  expect(await countWaitingJobs(sql, { by: "ROUTE", key: "DATACENTER" })).toBe(600);
  expect(await countWaitingJobs(sql, { by: "ROUTE", key: "DIRECT" })).toBe(0);
});
