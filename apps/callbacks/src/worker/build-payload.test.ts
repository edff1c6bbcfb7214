import { Job } from "@keble-scraper/contract";
import { describe, expect, it } from "vitest";
import { buildPayload, PAYLOAD_BYTES_MAX } from "./build-payload.ts";

const ID = "01900000-0000-7000-8000-000000000001";
const TIME = "2026-11-30T17:00:00.000Z";

function job(overrides: Partial<Job> = {}, result: Partial<NonNullable<Job["result"]>> = {}): Job {
  return {
    id: ID,
    callerId: "acme",
    status: "SUCCEEDED",
    target: { url: "https://shop.example.com/p/1", method: "GET", headers: { referer: "https://shop.example.com/" } },
    transport: "HTTP",
    routes: ["DIRECT"],
    freshness: "NO_CACHE",
    accept: "SUCCESS_ONLY",
    robots: "RESPECT",
    limits: {
      attemptBudget: 3,
      attemptsUsed: 1,
      deadlineAt: TIME,
      maxBodyBytes: 1_000,
      costCapMicros: 0,
      costMicros: 0,
    },
    result: {
      httpStatus: 200,
      finalUrl: "https://shop.example.com/p/1",
      redirects: [{ url: "https://shop.example.com/", httpStatus: 301 }],
      headers: { "x-note": "a" },
      contentType: { declared: "text/html", sniffed: "text/html" },
      charset: { declared: "utf-8", detected: "utf-8" },
      artifactId: ID,
      sha256: "ab".repeat(32),
      sizeBytes: 5,
      route: "DIRECT",
      fetchedAt: TIME,
      fromCache: false,
      ...result,
    },
    failure: null,
    callback: { endpoint: "orders", eventId: ID, state: "LEASED" },
    labels: { batch: "2026-11" },
    createdAt: TIME,
    dueAt: TIME,
    finishedAt: TIME,
    ...overrides,
  };
}

const payloadOf = (of: Job) =>
  buildPayload({ id: ID, type: "job.succeeded", occurredAt: new Date(Date.parse(TIME)), job: of });
const read = (text: string) => JSON.parse(text) as { data: { job: Job } };

describe("buildPayload", () => {
  it("is the event with the job as it is read", () => {
    expect(read(payloadOf(job()))).toEqual({ id: ID, type: "job.succeeded", occurredAt: TIME, data: { job: job() } });
  });

  it("takes a job without a result", () => {
    const cancelled = job({ status: "CANCELLED", result: null });
    expect(read(payloadOf(cancelled)).data.job).toEqual(cancelled);
  });

  it("drops the answer's headers first, and only when the body is too large", () => {
    const rest = Buffer.byteLength(payloadOf(job({}, { headers: { a: "" } })));
    const fits = job({}, { headers: { a: "x".repeat(PAYLOAD_BYTES_MAX - rest) } });
    expect(Buffer.byteLength(payloadOf(fits))).toBe(PAYLOAD_BYTES_MAX);
    const over = job({}, { headers: { a: "x".repeat(PAYLOAD_BYTES_MAX - rest + 1) } });
    expect(read(payloadOf(over)).data.job).toEqual(job({}, { headers: {} }));
  });

  it("counts bytes, not characters", () => {
    const wide = job({}, { headers: { a: "é".repeat(PAYLOAD_BYTES_MAX * 0.6) } });
    expect(read(payloadOf(wide)).data.job.result?.headers).toEqual({});
  });

  it("stays bounded and readable when everything that varies is as large as it may be", () => {
    const url = (name: string) => `https://shop.example.com/${name.repeat(8_192 - 25)}`;
    const header = "é".repeat(4_096);
    const largest = job(
      {
        target: {
          url: url("a"),
          method: "GET",
          headers: Object.fromEntries(["a", "b", "c", "d", "e", "f"].map((name) => [name, header])),
        },
        labels: Object.fromEntries(Array.from({ length: 16 }, (_, n) => [String(n).padStart(64, "k"), "v".repeat(64)])),
      },
      {
        finalUrl: url("b"),
        redirects: Array.from({ length: 20 }, () => ({ url: url("c"), httpStatus: 302 })),
        headers: { "x-large": "y".repeat(16_384) },
        contentType: { declared: "z".repeat(16_384), sniffed: "text/html" },
        charset: { declared: "z".repeat(16_384), detected: "utf-8" },
      },
    );
    const text = payloadOf(largest);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(PAYLOAD_BYTES_MAX);
    expect(Job.safeParse(read(text).data.job).success).toBe(true);
    expect(read(text).data.job.target.url).toBe(url("a"));
  });
});
