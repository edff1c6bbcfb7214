import { describe, expect, it } from "vitest";
import { z } from "zod";
import * as contract from "./index.ts";

const id = "01978b3c-7a00-7000-8000-000000000001";
const now = "2026-11-30T17:00:00.000Z";

const job: contract.Job = {
  id,
  callerId: "acme",
  status: "QUEUED",
  target: { url: "https://a.example/", method: "GET", headers: {} },
  transport: "HTTP",
  routes: ["DIRECT"],
  freshness: "NO_CACHE",
  accept: "SUCCESS_ONLY",
  robots: "RESPECT",
  limits: { attemptBudget: 3, attemptsUsed: 0, deadlineAt: now, maxBodyBytes: 1, costCapMicros: 0, costMicros: 0 },
  result: null,
  failure: null,
  callback: null,
  labels: {},
  createdAt: now,
  dueAt: now,
  finishedAt: null,
};

describe("lists", () => {
  it("are 50 rows by default and 200 at most", () => {
    expect(contract.PageQuery.parse({})).toEqual({ limit: 50 });
    expect([1, 200].every((limit) => contract.PageQuery.safeParse({ limit }).success)).toBe(true);
    expect([0, 201, 1.5, "50", null].some((limit) => contract.PageQuery.safeParse({ limit }).success)).toBe(false);
  });

  it("refuse unknown filters, foreign cursors and times that are none", () => {
    const bad = [
      { foo: 1 },
      { cursor: "a b" },
      { cursor: "x".repeat(501) },
      { createdAfter: "yesterday" },
      { createdAfter: "2026-11-30" },
      // A moment that the database can't read would be a fault.
      { createdAfter: "0000-12-31T23:59:59Z" },
      { createdAfter: "0001-01-01T00:00:00+00:01" },
      { createdBefore: "9999-12-31T23:59:59-00:01" },
      { createdAfter: `2026-11-30T00:00:00.${"0".repeat(50)}Z` },
      { label: "key" },
      { label: "a:b:c" },
      { status: "queued" },
    ];
    expect(bad.filter((query) => contract.JobQuery.safeParse(query).success)).toEqual([]);
  });

  it("take times with an offset", () => {
    expect(contract.JobQuery.safeParse({ createdAfter: "2026-11-30T19:00:00.5+02:00" }).success).toBe(true);
  });
});

describe("a job", () => {
  it("says what it captures and where it wishes to come out, when it was asked", () => {
    const asked = { ...job, transport: "RENDER", routes: ["LOCAL_RENDER"], capture: "PDF", egress: { country: "us" } };
    expect(contract.Job.parse(asked)).toEqual(asked);
    expect(contract.Job.safeParse({ ...job, egress: { city: "paris" } }).success).toBe(false);
  });

  it("has no callback, or one whose event comes with its end", () => {
    expect(contract.Job.parse(job)).toEqual(job);
    const waiting = { ...job, callback: { endpoint: "orders", eventId: null, state: "PENDING" } };
    expect(contract.Job.parse(waiting)).toEqual(waiting);
  });

  it("shows no field that is not documented", () => {
    expect(contract.Job.safeParse({ ...job, leaseToken: id }).success).toBe(false);
  });

  it("is terminal when it succeeded, failed or was cancelled", () => {
    expect(contract.JOB_STATUSES.filter(contract.isTerminal)).toEqual([...contract.TERMINAL_JOB_STATUSES]);
  });
});

describe("a key", () => {
  it("of a service has a caller and scopes, of an operator neither", () => {
    const good = [
      { name: "a", kind: "SERVICE", callerId: "acme", scopes: ["jobs:read"] },
      { name: "a", kind: "OPERATOR" },
    ];
    const bad = [
      { name: "a", kind: "SERVICE", scopes: ["jobs:read"] },
      { name: "a", kind: "SERVICE", callerId: "acme" },
      { name: "a", kind: "OPERATOR", callerId: "acme" },
      { name: "a", kind: "OPERATOR", scopes: ["jobs:read"] },
      { name: "a", kind: "SERVICE", callerId: "acme", scopes: ["jobs:read", "jobs:read"] },
      { name: "a", kind: "SERVICE", callerId: "acme", scopes: ["jobs:all"] },
    ];
    expect(good.every((key) => contract.CreateApiKey.safeParse(key).success)).toBe(true);
    expect(bad.some((key) => contract.CreateApiKey.safeParse(key).success)).toBe(false);
  });
});

describe("a callback endpoint", () => {
  it("is read without its secret", () => {
    expect(Object.keys(contract.CallbackEndpoint.shape)).not.toContain("secret");
    expect(Object.keys(contract.RegisteredCallbackEndpoint.shape)).toContain("secret");
  });

  it("is changed by at least one field, and only by the three", () => {
    expect(contract.PatchCallbackEndpoint.safeParse({}).success).toBe(false);
    expect(contract.PatchCallbackEndpoint.safeParse({ name: "x" }).success).toBe(false);
    expect(contract.PatchCallbackEndpoint.safeParse({ enabled: false }).success).toBe(true);
  });
});

describe("what services answer", () => {
  it("is a value or a failure with details, never both", () => {
    const Answer = contract.resultOf(z.int());
    expect(Answer.safeParse({ ok: true, value: 1 }).success).toBe(true);
    const failure = { ...contract.localFailure("INVALID_REQUEST"), details: [{ path: "", message: "No." }] };
    expect(Answer.safeParse({ ok: false, failure }).success).toBe(true);
    expect(Answer.safeParse({ ok: false, value: 1, failure }).success).toBe(false);
    expect(Answer.safeParse({ ok: true, failure }).success).toBe(false);
  });
});

describe("the contract as a whole", () => {
  it("can be rendered as JSON Schema, so that pages can be made of it", () => {
    const schemas = Object.values<unknown>(contract).filter((value) => value instanceof z.ZodType);
    expect(schemas.length).toBeGreaterThan(50);
    for (const schema of schemas) {
      expect(() => z.toJSONSchema(schema, { io: "input" })).not.toThrow();
    }
  });

  it("formats times as RFC 3339 UTC with milliseconds", () => {
    expect(contract.formatTime(new Date(0))).toBe("1970-01-01T00:00:00.000Z");
    expect(contract.Time.safeParse("1970-01-01T00:00:00Z").success).toBe(false);
  });
});
