import type { Route } from "@keble-scraper/contract";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeEach, expect, test } from "vitest";
import {
  type AttemptReport,
  markProbed,
  quarantineRoute,
  releaseRoute,
  settleJobs,
} from "../src/commands/fetching/index.ts";
import { submitJobs } from "../src/commands/intake/index.ts";
import { findJob } from "../src/queries/find-job.ts";
import { listAttempts } from "../src/queries/list-attempts.ts";
import { listHostHolds } from "../src/queries/list-host-holds.ts";
import { listQuarantines } from "../src/queries/list-quarantines.ts";
import type { Actor } from "../src/steps/append-audit.ts";
import {
  OPTIONS,
  claim,
  claimOne,
  failedRetryably,
  newJob,
  openTestDatabase,
  submitOne,
  succeeded,
} from "./job-fixtures.ts";

const database = await openTestDatabase();
const sql = database.commands;
const BY: Actor = { actor: "system:proxy-health", requestId: null };
const OPERATOR = { actor: "0190-key", requestId: "req-7" };
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(async () => {
  await sql`update jobs set status = 'CANCELLED', lease_token = null, lease_until = null, finished_at = clock_timestamp()
            where finished_at is null`;
  await sql`delete from route_quarantines`;
});

function quarantine(reason: string, forMs: number | null, by = BY, route: Route = "UNLOCKER") {
  return quarantineRoute(sql, { route, reason, nativeCode: "407", note: "wrong \0password", forMs, by });
}

async function auditOf(route: string) {
  return sql<{ action: string; actor: string; request_id: string | null; details: Record<string, unknown> }[]>`
    select action, actor, request_id, details from audit_events where subject = ${`route:${route}`} order by occurred_at, id`;
}

const remaining = async () => {
  const [row] = await listQuarantines(sql);
  return row?.liftsAt === null ? Number.POSITIVE_INFINITY : (row?.liftsAt.getTime() ?? 0) - Date.now();
};

test("O5 a quarantine, and its release, are audited in their own transaction; a release of an open route is not", async () => {
  const row = await quarantine("OPERATOR", 60_000, OPERATOR, "RESIDENTIAL");
  expect(row).toMatchObject({
    route: "RESIDENTIAL",
    reason: "OPERATOR",
    note: "wrong \uFFFDpassword",
    actor: "0190-key",
  });
  expect((row.liftsAt?.getTime() ?? 0) - row.quarantinedAt.getTime()).toBe(60_000);
  expect(await releaseRoute(sql, { route: "RESIDENTIAL", by: OPERATOR })).toBe(true);
  expect(await releaseRoute(sql, { route: "RESIDENTIAL", by: OPERATOR })).toBe(false);
  expect(await auditOf("RESIDENTIAL")).toMatchObject([
    {
      action: "route.quarantined",
      actor: "0190-key",
      request_id: "req-7",
      details: { reason: "OPERATOR", nativeCode: "407" },
    },
    { action: "route.released", actor: "0190-key", request_id: "req-7", details: { quarantinedBy: "0190-key" } },
  ]);
  // In a transaction that does not commit, neither is there.
  await sql
    .begin(async (tx) => {
      await quarantineRoute(tx, {
        route: "DIRECT",
        reason: "OPERATOR",
        nativeCode: null,
        note: null,
        forMs: null,
        by: OPERATOR,
      });
      throw new Error("undone");
    })
    .catch(() => undefined);
  expect(await auditOf("DIRECT")).toEqual([]);
});

test("W4 a quarantine is never shortened by a shorter one, nor an operator's by any but an operator", async () => {
  await quarantine("PROVIDER_AUTH", 600_000);
  expect(await quarantine("PROVIDER_QUOTA", 60_000)).toMatchObject({ reason: "PROVIDER_AUTH" });
  expect(await remaining()).toBeGreaterThan(590_000);
  await quarantine("COST_OVERRUN", null);
  expect(await remaining()).toBe(Number.POSITIVE_INFINITY);
  await quarantine("PROVIDER_AUTH", 600_000);
  expect(await remaining()).toBe(Number.POSITIVE_INFINITY);
  expect(await quarantine("OPERATOR", 30_000, OPERATOR)).toMatchObject({ reason: "OPERATOR" });
  expect(await quarantine("PROVIDER_AUTH", null)).toMatchObject({ reason: "OPERATOR" });
  expect(await remaining()).toBeLessThan(31_000);
  await sql`update route_quarantines set quarantined_at = clock_timestamp() - interval '1 h', lifts_at = clock_timestamp() - interval '1 s'`;
  expect(await listQuarantines(sql)).toEqual([]);
  expect(await quarantine("PROVIDER_AUTH", 5_000)).toMatchObject({ reason: "PROVIDER_AUTH" });
});

test("W4 many attempts that fail alike at once write one quarantine, with one line of the audit", async () => {
  const jobs = Array.from({ length: 40 }, () => newJob({ routes: ["DATACENTER", "UNLOCKER"] }));
  await submitJobs(sql, { callerId: "acme", jobs, queuedMax: null });
  await sql`update jobs set due_at = due_at - interval '1 s' where status = 'QUEUED'`;
  const leases = await claim(database, 40);
  const reports = leases.map((lease) =>
    failedRetryably(lease, { quarantine: { reason: "PROVIDER_AUTH", nativeCode: "ip_blacklisted", forMs: 300_000 } }),
  );
  const groups = [0, 10, 20, 30].map((from) => settleJobs(sql, reports.slice(from, from + 10), OPTIONS));
  const verdicts = (await Promise.all(groups)).flat();
  expect(verdicts.every((row) => row.verdict === "SETTLED")).toBe(true);
  const [row] = await listQuarantines(sql);
  expect(row).toMatchObject({
    route: "DATACENTER",
    reason: "PROVIDER_AUTH",
    nativeCode: "ip_blacklisted",
    actor: "system:settle",
  });
  expect(jobs.map((job) => job.id)).toContain(row?.jobId);
  expect(await auditOf("DATACENTER")).toMatchObject([
    { action: "route.quarantined", actor: "system:settle", details: { reason: "PROVIDER_AUTH", jobId: row?.jobId } },
  ]);
});

test("J2 a stale settle quarantines nothing", async () => {
  await submitOne(database);
  const lease = { ...(await claimOne(database)), token: crypto.randomUUID() };
  const quarantined = { reason: "PROVIDER_AUTH", nativeCode: null, forMs: null };
  await settleJobs(sql, [failedRetryably(lease, { quarantine: quarantined })], OPTIONS);
  expect(await listQuarantines(sql)).toEqual([]);
});

test("W4 a probe is noted on the quarantine that stands, and a new quarantine has had none", async () => {
  expect(await markProbed(sql, "UNLOCKER")).toBe(false);
  expect(await quarantine("PROVIDER_AUTH", 60_000)).toMatchObject({ probedAt: null });
  expect(await markProbed(sql, "UNLOCKER")).toBe(true);
  expect((await listQuarantines(sql))[0]?.probedAt).toBeInstanceOf(Date);
  expect(await quarantine("PROVIDER_PAYMENT", 600_000)).toMatchObject({ reason: "PROVIDER_PAYMENT", probedAt: null });
});

test("groups that hold the same hosts and quarantine the same routes in opposite orders all end", async () => {
  const hosts = ["a.example.com", "b.example.com", "c.example.com", "d.example.com"];
  for (let round = 0; round < 8; round += 1) {
    const jobs = Array.from({ length: 80 }, (_, index) =>
      newJob({ hostKey: hosts[index % 4] ?? "", routes: [index % 2 === 0 ? "DATACENTER" : "RESIDENTIAL"] }),
    );
    await sql`delete from route_quarantines`;
    await submitJobs(sql, { callerId: "acme", jobs, queuedMax: null });
    await sql`update jobs set due_at = due_at - interval '1 s' where status = 'QUEUED'`;
    const reports = (await claim(database, 80)).map((lease, index): AttemptReport =>
      failedRetryably(lease, {
        next: "FINISH",
        hold: { hostKey: lease.hostKey, ms: 1_000 + index },
        quarantine: { reason: "PROVIDER_AUTH", nativeCode: null, forMs: 60_000 + index * 120_000 },
      }),
    );
    expect(reports).toHaveLength(80);
    await sql`delete from host_holds`;
    const groups = Array.from({ length: 8 }, (_, index) => reports.slice(index * 10, index * 10 + 10));
    const verdicts = await Promise.all(
      groups.map((group, index) => settleJobs(sql, index % 2 === 0 ? group : group.toReversed(), OPTIONS)),
    );
    expect(verdicts.flat().every((row) => row.verdict === "SETTLED")).toBe(true);
    expect(await listHostHolds(sql, hosts)).toHaveLength(4);
    await sql`delete from host_holds`;
  }
});

test("the refused body of a failed attempt is its evidence, and never the job's artifact", async () => {
  const id = await submitOne(database);
  const lease = await claimOne(database);
  const { bytes } = succeeded(lease, "ef".repeat(32));
  const [verdict] = await settleJobs(sql, [failedRetryably(lease, { bytes, next: "FINISH" })], OPTIONS);
  expect(verdict?.ended).toMatchObject({ id, status: "FAILED" });
  const [job] = await sql`select artifact_id from jobs where id = ${id}`;
  expect(job).toEqual({ artifact_id: null });
  const { items } = await listAttempts(database.reads, { jobId: id, afterId: null, limit: 5 });
  expect(items[0]?.evidenceArtifactId).toBe(bytes?.artifactId);
  expect(await findJob(database.reads, id, null)).toMatchObject({ status: "FAILED", result: null });
  const other = await submitOne(database);
  await settleJobs(sql, [succeeded(await claimOne(database), "ee".repeat(32))], OPTIONS);
  const page = await listAttempts(database.reads, { jobId: other, afterId: null, limit: 5 });
  expect(page.items[0]?.evidenceArtifactId).toBeNull();
});

test("a job shows its capture and its egress wishes only where it has them, and its lease knows them", async () => {
  const plain = await findJob(database.reads, await submitOne(database), null);
  expect(plain).not.toHaveProperty("capture");
  expect(plain).not.toHaveProperty("egress");
  const id = uuidv7();
  const job = newJob({
    id,
    transport: "RENDER",
    routes: ["LOCAL_RENDER"],
    capture: "PDF",
    egress: { country: "us", stickyKey: "cart-42" },
    hostKey: "shop.example.com:8443",
    costCapMicros: 12,
  });
  await submitJobs(sql, { callerId: "acme", jobs: [job], queuedMax: null });
  const shown = { capture: "PDF", egress: { country: "us", stickyKey: "cart-42" } };
  expect(await findJob(database.reads, id, null)).toMatchObject(shown);
  const lease = await claimOne(database, { transport: "RENDER" });
  expect(lease).toMatchObject({
    id,
    ...shown,
    hostKey: "shop.example.com:8443",
    costCapMicros: 12,
    costMicros: 0,
    booking: null,
  });
});
