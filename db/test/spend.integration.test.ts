import { afterAll, expect, test } from "vitest";
import { settleJobs } from "../src/commands/fetching/index.ts";
import { listRouteSpend } from "../src/queries/list-route-spend.ts";
import { listBudgets, readBudgetCursor } from "../src/queries/list-budgets.ts";
import { sumUsage } from "../src/queries/sum-usage.ts";
import {
  claimOne,
  failedRetryably,
  openTestDatabase,
  OPTIONS,
  PAID,
  reserve,
  submitOne,
  succeeded,
} from "./job-fixtures.ts";

const database = await openTestDatabase();
const sql = database.commands;
afterAll(() => database[Symbol.asyncDispose]());

const HOUR = 3_600_000;
const range = () => ({ from: new Date(Date.now() - HOUR), to: new Date(Date.now() + HOUR) });

async function spend(
  callerId: string,
  label: string | null,
  costMicros: number,
  ends: "SUCCEEDED" | "FAILED",
): Promise<void> {
  await submitOne(database, { ...PAID, labels: label === null ? {} : { batch: label } }, callerId);
  const lease = await claimOne(database);
  await reserve(database, lease, 1_000);
  const report = ends === "SUCCEEDED" ? succeeded(lease) : failedRetryably(lease, { next: "FINISH" });
  await settleJobs(sql, [{ ...report, hasReservation: true, costMicros, bodyBytes: 10, wireBytes: 7 }], OPTIONS);
}

test("usage is summed by route and by label, for one caller or all, over the time in which attempts ended", async () => {
  await spend("acme", "x", 300, "SUCCEEDED");
  await spend("acme", "x", 100, "FAILED");
  await spend("acme", null, 50, "SUCCEEDED");
  await spend("other", "y", 900, "SUCCEEDED");
  await submitOne(database, {}, "other");
  await settleJobs(sql, [succeeded(await claimOne(database))], OPTIONS);

  const all = await sumUsage(database.reads, { callerId: null, ...range(), groupBy: "route" });
  expect(all.items).toMatchObject([
    { key: "DATACENTER", attempts: 4, succeeded: 3, failed: 1, bodyBytes: 40, wireBytes: 28, costMicros: 1_350 },
    { key: "DIRECT", attempts: 1, succeeded: 1, failed: 0, costMicros: 0 },
  ]);
  expect(all.total).toMatchObject({ attempts: 5, costMicros: 1_350 });
  const own = await sumUsage(database.reads, { callerId: "acme", ...range(), groupBy: { label: "batch" } });
  expect(own.items).toMatchObject([
    { key: "x", attempts: 2, costMicros: 400 },
    { key: null, attempts: 1, costMicros: 50 },
  ]);
  expect(own.total).toMatchObject({ attempts: 3, costMicros: 450 });
  const past = { from: new Date(Date.now() - 3 * HOUR), to: new Date(Date.now() - HOUR) };
  const none = await sumUsage(database.reads, { callerId: null, ...past, groupBy: "route" });
  expect(none).toEqual({
    items: [],
    total: { attempts: 0, succeeded: 0, failed: 0, bodyBytes: 0, wireBytes: 0, costMicros: 0 },
  });
});

test("what each route spent is told by day and month, and budgets are paged by their key", async () => {
  await sql`insert into budgets (scope, name, period, starts_on, settled_micros) values
    ('ROUTE', 'DATACENTER', 'DAY', '2020-02-29', 77), ('ROUTE', 'DATACENTER', 'MONTH', '2020-02-01', 78)`;
  expect(await listRouteSpend(sql)).toEqual([
    { route: "DATACENTER", period: "DAY", settledMicros: 1_350, reservedMicros: 0, overrunMicros: 0 },
    { route: "DATACENTER", period: "MONTH", settledMicros: 1_350, reservedMicros: 0, overrunMicros: 0 },
  ]);
  const seen: string[] = [];
  for (let cursor: string | undefined, more = true; more;) {
    const after = readBudgetCursor(cursor);
    if (!after.ok) throw new Error("our own cursor was refused");
    const page = await listBudgets(database.reads, { after: after.value, limit: 4 });
    seen.push(...page.items.map((row) => `${row.scope} ${row.name} ${row.period} ${row.settledMicros}`));
    cursor = page.nextCursor ?? undefined;
    more = page.nextCursor !== null;
  }
  expect(seen).toEqual([
    "CALLER acme DAY 450",
    "CALLER acme MONTH 450",
    "CALLER other DAY 900",
    "CALLER other MONTH 900",
    "ROUTE DATACENTER DAY 1350",
    "ROUTE DATACENTER MONTH 1350",
  ]);
  const past = await listBudgets(database.reads, { scope: "ROUTE", startsOn: "2020-02-29", after: null, limit: 4 });
  expect(past.items).toMatchObject([{ name: "DATACENTER", startsOn: "2020-02-29", settledMicros: 77 }]);
  const one = await listBudgets(database.reads, { name: "acme", period: "MONTH", after: null, limit: 4 });
  expect(one.items).toHaveLength(1);
});

test.each([
  "",
  "x",
  "Uk9VVEUg",
  ...["2026-13-45", "2026-02-31", "0000-01-01"].map((day) =>
    Buffer.from(`ROUTE DIRECT DAY ${day}`).toString("base64url"),
  ),
])("a cursor of budgets that is not ours is refused, also one that names a day that never was: %s", (cursor) => {
  expect(readBudgetCursor(cursor)).toMatchObject({ ok: false, failure: { code: "INVALID_REQUEST" } });
});
