import type { Principal, RouteState } from "@keble-scraper/contract";
import { countQueuedJobs, createDatabase, migrate } from "@keble-scraper/db";
import { claimJobs, settleJobs } from "@keble-scraper/db/commands/fetching";
import { NO_ALLOWED_TARGETS } from "@keble-scraper/egress";
import { createTestDatabase } from "@keble-scraper/testkit";
import { afterAll, beforeEach, expect, test } from "vitest";
import type { IntakeContext } from "../src/context.ts";
import { createJobWaits } from "../src/job-waits.ts";
import { createQueueMeter } from "../src/queue-meter.ts";
import { intakeRouter } from "../src/router.ts";

const testDatabase = await createTestDatabase({ migrate });
const database = createDatabase({
  url: testDatabase.url,
  applicationName: "test",
  commandConnections: 8,
  readConnections: 4,
  statementTimeoutMs: 20_000,
});
const rung: { transport: string; jobId: string }[] = [];
const cancelled: string[] = [];
const QUEUED_MAX = 10;

const LIMITS = { attemptMs: 60_000, priceMicros: 0, narrows: [] } as const;
const ROUTES: RouteState[] = [
  { route: "DIRECT", health: "HEALTHY", ...LIMITS, narrows: [] },
  { route: "DATACENTER", health: "HEALTHY", attemptMs: 60_000, priceMicros: 600_000, narrows: ["country"] },
  { route: "RESIDENTIAL", health: "NOT_CONFIGURED", reason: "not configured", ...LIMITS, narrows: [] },
  { route: "UNLOCKER", health: "QUARANTINED", reason: "quarantined", ...LIMITS, priceMicros: 1_500, narrows: [] },
  { route: "LOCAL_RENDER", health: "HEALTHY", ...LIMITS, narrows: [] },
];

function callerOf() {
  const context: IntakeContext = {
    database,
    waits: createJobWaits(),
    routes: {
      list: () => Promise.resolve(ROUTES),
      listNow: () => Promise.resolve(ROUTES),
    },
    queue: createQueueMeter({
      queuedMax: QUEUED_MAX,
      count: (callerId, upTo) => countQueuedJobs(database.commands, callerId, upTo),
      monotonicMs: () => performance.now(),
    }),
    allowedTargets: NO_ALLOWED_TARGETS,
    bodyBytesMax: 100_000_000,
    jobRetentionMs: 1_000_000,
    auditDays: 400,
    ring: (payload) => rung.push(payload),
    announceEnded: () => undefined,
    announceCancelled: (ids) => void cancelled.push(...ids),
  };
  return intakeRouter.createCaller({
    ...context,
    requestId: "test",
    deadlineAt: Date.now() + 30_000,
    signal: new AbortController().signal,
    logger: { error: () => undefined } as never,
  });
}

function service(callerId = "acme"): Principal {
  return { keyId: crypto.randomUUID(), kind: "SERVICE", callerId, scopes: ["jobs:read", "jobs:write"] };
}
const operator: Principal = { keyId: crypto.randomUUID(), kind: "OPERATOR", callerId: null, scopes: [] };
const body = { target: { url: "https://shop.example.com/p/1" } };

beforeEach(async () => {
  rung.length = 0;
  cancelled.length = 0;
  await database.commands`truncate jobs cascade`.catch(async () => {
    await database.commands`update jobs set status = 'CANCELLED', lease_token = null, lease_until = null, finished_at = clock_timestamp() where finished_at is null`;
  });
});
afterAll(async () => {
  await database.stop(performance.now() + 1_000);
  await testDatabase[Symbol.asyncDispose]();
});

async function jobCount(): Promise<number> {
  const [row] = await database.commands<{ count: number }[]>`select count(*)::int as count from jobs`;
  return row?.count ?? 0;
}

test("a submit answers the job with every default and rings once after it", async () => {
  const answer = await callerOf().submitJob({ principal: service(), body });
  expect(answer).toMatchObject({
    ok: true,
    value: {
      replay: false,
      job: {
        callerId: "acme",
        status: "QUEUED",
        target: { url: "https://shop.example.com/p/1", method: "GET", headers: {} },
        routes: ["DIRECT"],
        limits: { attemptBudget: 3, attemptsUsed: 0, maxBodyBytes: 10_485_760, costMicros: 0 },
        result: null,
        callback: null,
      },
    },
  });
  expect(rung).toHaveLength(1);
});

test("the answer to a submit is what a read of the job says", async () => {
  const caller = callerOf();
  const submitted = await caller.submitJob({ principal: service(), body: { ...body, labels: { batch: "1" } } });
  if (!submitted.ok) throw new Error("refused");
  const read = await caller.getJob({ principal: service(), id: submitted.value.job.id });
  expect(read).toEqual({ ok: true, value: submitted.value.job });
});

test("what a job renders, and where it wishes to come out, is in every answer about it", async () => {
  const caller = callerOf();
  const wishes = { egress: { country: "us" }, routes: ["DATACENTER"], limits: { costCapMicros: 10_000 } };
  for (const [sent, expected] of [
    [
      { ...body, transport: "RENDER", capture: "PDF" },
      { routes: ["LOCAL_RENDER"], capture: "PDF" },
    ],
    [{ ...body, transport: "RENDER" }, { capture: "DOM" }],
    [
      { ...body, ...wishes },
      { egress: { country: "us" }, routes: ["DATACENTER"] },
    ],
  ] as const) {
    const submitted = await caller.submitJob({ principal: service(), body: sent });
    expect(submitted).toMatchObject({ ok: true, value: { job: expected } });
    if (!submitted.ok) throw new Error("refused");
    const read = await caller.getJob({ principal: service(), id: submitted.value.job.id });
    expect(read).toEqual({ ok: true, value: submitted.value.job });
  }
  expect(rung.map(({ transport }) => transport)).toEqual(["RENDER", "RENDER", "HTTP"]);
});

test("a job that lists a quarantined route is accepted, and its check says what is closed and what all may cost", async () => {
  const caller = callerOf();
  const sent = { ...body, routes: ["DIRECT", "DATACENTER", "UNLOCKER"], limits: { costCapMicros: 8_000 } };
  expect((await caller.submitJob({ principal: service(), body: sent })).ok).toBe(true);
  const check = await caller.checkJob({ principal: service(), body: sent });
  expect(check).toEqual({
    ok: true,
    value: {
      allowed: true,
      routes: [
        { route: "DIRECT", available: true },
        { route: "DATACENTER", available: true },
        { route: "UNLOCKER", available: false, reason: "quarantined" },
      ],
      worstCostMicros: 8_000,
    },
  });
});

test("W3 a job with less money than one attempt may cost is accepted, and its check says so beforehand", async () => {
  const caller = callerOf();
  const sent = { ...body, routes: ["DATACENTER"], limits: { costCapMicros: 100 } };
  expect((await caller.submitJob({ principal: service(), body: sent })).ok).toBe(true);
  const check = await caller.checkJob({ principal: service(), body: sent });
  const reason = "one attempt may cost 6614 micro-USD, more than limits.costCapMicros";
  expect(check).toMatchObject({
    ok: true,
    value: { allowed: true, routes: [{ route: "DATACENTER", available: true, reason }], worstCostMicros: 100 },
  });
});

test("J7 the same key and body is the first job again; key order does not matter, a default written out does", async () => {
  const caller = callerOf();
  const submit = (sent: unknown) => caller.submitJob({ principal: service(), body: sent, idempotencyKey: "k" });
  const first = await submit({ target: { url: "https://shop.example.com/a", method: "GET" } });
  const again = await submit({ target: { method: "GET", url: "https://shop.example.com/a" } });
  const other = await submit({ target: { url: "https://shop.example.com/a" } });
  if (!first.ok || !again.ok) throw new Error("refused");
  expect(again.value).toEqual({ job: first.value.job, replay: true });
  expect(other).toMatchObject({ ok: false, failure: { code: "IDEMPOTENCY_MISMATCH" } });
  const elsewhere = await caller.submitJob({ principal: service("other"), body, idempotencyKey: "k" });
  expect(elsewhere).toMatchObject({ ok: true, value: { replay: false } });
});

test("a bad item of a batch harms no other, and every good one is accepted", async () => {
  const answer = await callerOf().submitBatch({
    principal: service(),
    jobs: [
      body,
      { target: { url: "http://127.0.0.1/" } },
      { nonsense: true },
      { ...body, idempotencyKey: "" },
      { ...body, idempotencyKey: "b" },
      "text",
    ],
  });
  if (!answer.ok) throw new Error("refused");
  const seen = answer.value.items.map((item) => ("job" in item ? "job" : item.error.code));
  expect(seen).toEqual(["job", "TARGET_FORBIDDEN", "INVALID_REQUEST", "INVALID_REQUEST", "job", "INVALID_REQUEST"]);
  expect(rung).toHaveLength(1);
});

test("J9 a full queue answers QUEUE_FULL with a time, a batch as a whole, and accepts nothing", async () => {
  const caller = callerOf();
  const batch = (count: number) =>
    caller.submitBatch({ principal: service("full"), jobs: Array.from({ length: count }, () => body) });
  expect((await batch(QUEUED_MAX)).ok).toBe(true);
  const before = await jobCount();
  const refused = await batch(2);
  expect(refused).toMatchObject({ ok: false, failure: { code: "QUEUE_FULL", disposition: "RETRY_AT" } });
  expect(refused.ok ? null : refused.failure.retryAt).toMatch(/Z$/);
  expect(await caller.submitJob({ principal: service("full"), body })).toMatchObject({
    failure: { code: "QUEUE_FULL" },
  });
  expect(await jobCount()).toBe(before);
  expect((await caller.submitJob({ principal: service("free"), body })).ok).toBe(true);
});

test("J9 forty submits at once never pass the bound", async () => {
  const callers = [callerOf(), callerOf()];
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, index) => callers[index % 2]!.submitJob({ principal: service("burst"), body })),
  );
  expect(answers.filter((answer) => answer.ok)).toHaveLength(QUEUED_MAX);
});

const REFUSED: [string, object, string, string][] = [
  ["a private target", { target: { url: "http://169.254.169.254/" } }, "TARGET_FORBIDDEN", ""],
  ["a very long target", { target: { url: `https://example.com/${"a".repeat(10_000)}` } }, "TARGET_FORBIDDEN", ""],
  [
    "a rendering that is not configured",
    { ...body, transport: "RENDER", routes: ["CLOUDFLARE_RENDER"] },
    "ROUTE_UNAVAILABLE",
    "routes.0",
  ],
  ["a route of another transport", { ...body, routes: ["LOCAL_RENDER"] }, "ROUTE_UNAVAILABLE", "routes.0"],
  ["a capture of what is not rendered", { ...body, capture: "PDF" }, "NOT_SUPPORTED", "capture"],
  [
    "a HEAD of a browser",
    { target: { ...body.target, method: "HEAD" }, transport: "RENDER" },
    "NOT_SUPPORTED",
    "target.method",
  ],
  ["wishes without a paid route", { ...body, egress: { country: "us" } }, "NOT_SUPPORTED", "egress"],
  [
    "a paid route without money",
    { ...body, routes: ["DIRECT", "DATACENTER"] },
    "COST_CAP_EXCEEDED",
    "limits.costCapMicros",
  ],
  [
    "a paid route that is not configured",
    { ...body, routes: ["RESIDENTIAL"], limits: { costCapMicros: 5 } },
    "ROUTE_UNAVAILABLE",
    "routes.0",
  ],
  ["a route that is not configured", { ...body, routes: ["DIRECT", "RESIDENTIAL"] }, "ROUTE_UNAVAILABLE", "routes.1"],
  ["an unknown callback", { ...body, callback: { endpoint: "nobody" } }, "UNKNOWN_CALLBACK_ENDPOINT", ""],
  ["an unknown field", { ...body, extra: 1 }, "INVALID_REQUEST", "extra"],
  [
    "a body over the ceiling",
    { ...body, limits: { maxBodyBytes: 200_000_000 } },
    "NOT_SUPPORTED",
    "limits.maxBodyBytes",
  ],
];
test.each(REFUSED)("%s is refused with its code and changes nothing", async (_what, sent, code, path) => {
  const before = await jobCount();
  const caller = callerOf();
  const answer = await caller.submitJob({ principal: service(), body: sent });
  expect(answer).toMatchObject({ ok: false, failure: { kind: "LOCAL", code } });
  if (path !== "" && !answer.ok) expect(answer.failure.details?.[0]?.path).toBe(path);
  const check = await caller.checkJob({ principal: service(), body: sent });
  expect(check).toMatchObject(
    code === "INVALID_REQUEST" ? { ok: false } : { ok: true, value: { allowed: false, error: { code } } },
  );
  expect(await jobCount()).toBe(before);
  expect(rung).toHaveLength(0);
});

test("a refused route names those that are available", async () => {
  const answer = await callerOf().submitJob({ principal: service(), body: { ...body, routes: ["RESIDENTIAL"] } });
  expect(answer.ok ? "" : answer.failure.details?.[0]?.message).toContain("DIRECT");
});

test("an operator submits nothing, reads all and cancels all; a service sees only its own", async () => {
  const caller = callerOf();
  expect(await caller.submitJob({ principal: operator, body })).toMatchObject({ failure: { code: "FORBIDDEN" } });
  const mine = await caller.submitJob({ principal: service("acme"), body });
  if (!mine.ok) throw new Error("refused");
  const { id } = mine.value.job;
  const foreign = service("other");
  expect(await caller.getJob({ principal: foreign, id })).toMatchObject({ failure: { code: "NOT_FOUND" } });
  expect(await caller.listAttempts({ principal: foreign, id, query: { limit: 50 } })).toMatchObject({ ok: false });
  expect(await caller.cancelJob({ principal: foreign, id })).toMatchObject({ failure: { code: "NOT_FOUND" } });
  expect(await caller.getJob({ principal: operator, id })).toMatchObject({ ok: true, value: { status: "QUEUED" } });
  expect(await caller.cancelJob({ principal: operator, id })).toMatchObject({ value: { status: "CANCELLED" } });
  expect(cancelled).toEqual([id]);
  const again = await caller.cancelJob({ principal: service("acme"), id });
  expect(again).toMatchObject({ ok: true, value: { status: "CANCELLED" } });
});

test("a list pages through every job once, newest first, and narrows by status and label", async () => {
  const caller = callerOf();
  const principal = service("pages");
  for (let index = 0; index < 5; index += 1) {
    await caller.submitJob({ principal, body: { ...body, labels: { n: String(index % 2) } } });
  }
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await caller.listJobs({
      principal,
      query: cursor === undefined ? { limit: 2 } : { limit: 2, cursor },
    });
    if (!page.ok) throw new Error("refused");
    seen.push(...page.value.items.map((job) => job.id));
    cursor = page.value.nextCursor ?? undefined;
  } while (cursor !== undefined);
  expect(seen).toHaveLength(5);
  expect(seen).toEqual(seen.toSorted().toReversed());
  const even = await caller.listJobs({ principal, query: { limit: 50, label: "n:0" } });
  expect(even.ok ? even.value.items : []).toHaveLength(3);
  const failedOnes = await caller.listJobs({ principal, query: { limit: 50, status: "FAILED" } });
  expect(failedOnes.ok ? failedOnes.value.items : [1]).toHaveLength(0);
  expect(await caller.listJobs({ principal, query: { limit: 50, cursor: "bm90LWEtY3Vyc29y" } })).toMatchObject({
    ok: false,
    failure: { code: "INVALID_REQUEST", details: [{ path: "cursor" }] },
  });
});

test("a wait answers as soon as the job is terminal, without a hint, and otherwise with its current state", async () => {
  const caller = callerOf();
  const submitted = await caller.submitJob({ principal: service("waiter"), body });
  if (!submitted.ok) throw new Error("refused");
  const waiting = caller.getJob({ principal: service("waiter"), id: submitted.value.job.id, waitSeconds: 10 });
  let lease;
  do {
    ({
      leases: [lease],
    } = await claimJobs(database.commands, {
      transport: "HTTP",
      slots: 1,
      leaseSeconds: 60,
      afterCaller: "",
      of: "TRUSTED",
      callerRunningMax: null,
    }));
  } while (lease === undefined);
  await settleJobs(
    database.commands,
    [
      {
        id: lease.id,
        token: lease.token,
        attemptId: crypto.randomUUID(),
        outcome: "SUCCEEDED",
        httpStatus: 204,
        failure: null,
        retryAfterMs: null,
        bodyBytes: 0,
        wireBytes: 0,
        timings: {},
        result: {
          httpStatus: 204,
          finalUrl: "https://shop.example.com/p/1",
          redirects: [],
          headers: {},
          contentType: { declared: null, sniffed: null },
          charset: { declared: null, detected: null },
          route: "DIRECT",
          fromCache: false,
        },
        bytes: null,
        next: "FINISH",
        waitMs: 0,
        hasReservation: false,
        costMicros: 0,
        providerRequestId: null,
        hold: null,
        quarantine: null,
      },
    ],
    { abortGraceMs: 2_000, jobRetentionMs: 1_000_000 },
  );
  expect(await waiting).toMatchObject({ ok: true, value: { status: "SUCCEEDED", result: { sizeBytes: 0 } } });
  const other = await caller.submitJob({ principal: service("waiter"), body });
  if (!other.ok) throw new Error("refused");
  const unfinished = await caller.getJob({ principal: service("waiter"), id: other.value.job.id, waitSeconds: 1 });
  expect(unfinished).toMatchObject({ ok: true, value: { status: "QUEUED" } });
});

test("an ended job is erased once, by its own caller or an operator; an open one is not", async () => {
  const caller = callerOf();
  const submitted = await caller.submitJob({ principal: service(), body, idempotencyKey: "erase-me" });
  if (!submitted.ok) throw new Error("refused");
  const { id } = submitted.value.job;
  const call = { id, requestId: "r-1" };
  expect(await caller.deleteJob({ principal: service(), ...call })).toMatchObject({ failure: { code: "CONFLICT" } });
  await caller.cancelJob({ principal: service(), id });
  expect(await caller.deleteJob({ principal: service("other"), ...call })).toMatchObject({
    failure: { code: "NOT_FOUND" },
  });
  expect(await caller.deleteJob({ principal: operator, ...call })).toEqual({ ok: true, value: null });
  expect(await caller.getJob({ principal: service(), id })).toMatchObject({ failure: { code: "NOT_FOUND" } });
  const audit = await database.commands`select actor, request_id from audit_events where subject = ${`job:${id}`}`;
  expect(audit).toEqual([{ actor: operator.keyId, request_id: "r-1" }]);
  const again = await caller.submitJob({ principal: service(), body, idempotencyKey: "erase-me" });
  expect(again).toMatchObject({ ok: true, value: { replay: false } });
});
