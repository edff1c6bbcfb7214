import { DISPOSITIONS, localFailure, upstreamFailure } from "@keble-scraper/contract";
import { expect, test } from "vitest";
import { decideNext } from "./decide-next.ts";

const NOW = Date.parse("2026-01-01T00:00:00.000Z");
const options = { baseMs: 500, ceilingMs: 60_000, random: () => 1, wallMs: () => NOW };
const at = (ms: number) => new Date(NOW + ms).toISOString();

test("F2 whether to retry is read from the disposition alone", () => {
  const seen = DISPOSITIONS.map((disposition) => {
    const failure = upstreamFailure("HTTP_SERVER_ERROR", { disposition, retryAt: at(1_000), httpStatus: 503 });
    return decideNext(failure, 1, options).next;
  });
  expect(seen).toEqual(["RETRY", "RETRY_NEXT_ROUTE", "RETRY", "FINISH"]);
  expect(decideNext(localFailure("WORKER_LOST", { disposition: "TERMINAL" }), 1, options).next).toBe("FINISH");
});

test("F2 RETRY_AT never retries before its time, however short the backoff", () => {
  const failure = upstreamFailure("RATE_LIMITED", { disposition: "RETRY_AT", retryAt: at(7_000) });
  expect(decideNext(failure, 1, { ...options, random: () => 0 })).toEqual({
    next: "RETRY",
    waitMs: 7_000,
    retryAfterMs: 7_000,
  });
});

test("F2 a backoff longer than what the target asked for is waited in full", () => {
  const failure = upstreamFailure("RATE_LIMITED", { disposition: "RETRY_AT", retryAt: at(10) });
  expect(decideNext(failure, 8, options).waitMs).toBe(60_000);
});

test("F2 backoffs double from the base to the ceiling, drawn over the whole span", () => {
  const failure = upstreamFailure("CONNECT_TIMEOUT");
  expect([1, 2, 3, 8, 9].map((used) => decideNext(failure, used, options).waitMs)).toEqual([
    500, 1_000, 2_000, 60_000, 60_000,
  ]);
  expect(decideNext(failure, 3, { ...options, random: () => 0 }).waitMs).toBe(0);
});

test("a RETRY_AT without its time is a mistake of ours, not an immediate retry", () => {
  expect(() => decideNext(upstreamFailure("RATE_LIMITED", { disposition: "RETRY_AT" }), 1, options)).toThrow(
    /needs its time/,
  );
});
