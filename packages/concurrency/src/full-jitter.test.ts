import { describe, expect, it } from "vitest";
import { seededRandom } from "../test/gated-transport.ts";
import { fullJitter } from "./full-jitter.ts";

const almostOne = (): number => 1 - 2 ** -53;
const jobs = { baseMs: 500, factor: 2, ceilingMs: 60_000 };
const deliveries = { baseMs: 5_000, factor: 5, ceilingMs: 36_000_000 };

describe("fullJitter", () => {
  it.each([
    [1, 500],
    [2, 1_000],
    [3, 2_000],
    [7, 32_000],
    [8, 60_000],
    [20, 60_000],
    [5_000, 60_000],
  ])("F2 spreads a job's wait after attempt %d over 0 to %d ms", (attempt, spanMs) => {
    expect(fullJitter({ ...jobs, attempt }, almostOne)).toBe(spanMs);
    expect(fullJitter({ ...jobs, attempt }, () => 0)).toBe(0);
    expect(fullJitter({ ...jobs, attempt }, () => 0.5)).toBe(spanMs / 2);
  });

  it("F2 lets ten tries of a delivery take up to 35 hours", () => {
    const waits = Array.from({ length: 9 }, (_, index) => fullJitter({ ...deliveries, attempt: index + 1 }, almostOne));
    expect(waits.slice(0, 6)).toEqual([5_000, 25_000, 125_000, 625_000, 3_125_000, 15_625_000]);
    expect(waits.slice(6)).toEqual([36_000_000, 36_000_000, 36_000_000]);
    expect(waits.reduce((sum, ms) => sum + ms, 0) / 3_600_000).toBeCloseTo(35.4, 1);
  });

  it("F2 asks for randomness once and spreads callers over the whole span", () => {
    let calls = 0;
    const random = seededRandom(7);
    const counted = (): number => ((calls += 1), random());
    const waits = Array.from({ length: 400 }, () => fullJitter({ ...jobs, attempt: 1 }, counted));
    expect(calls).toBe(400);
    expect(Math.min(...waits)).toBeLessThan(25);
    expect(Math.max(...waits)).toBeGreaterThan(475);
    expect(waits.filter((ms) => ms < 250).length).toBeGreaterThan(160);
    expect(waits.every((ms) => Number.isInteger(ms) && ms >= 0 && ms <= 500)).toBe(true);
  });

  it("a base or a ceiling of zero means no wait, however large the factor has grown", () => {
    expect(fullJitter({ baseMs: 0, factor: 5, ceilingMs: 1_000, attempt: 9_999 }, almostOne)).toBe(0);
    expect(fullJitter({ baseMs: 500, factor: 5, ceilingMs: 0, attempt: 9_999 }, almostOne)).toBe(0);
  });

  it.each([
    { ...jobs, attempt: 0 },
    { ...jobs, attempt: 1.5 },
    { ...jobs, attempt: Number.NaN },
    { ...jobs, attempt: 1, baseMs: -1 },
    { ...jobs, attempt: 1, ceilingMs: Infinity },
    { ...jobs, attempt: 1, factor: 0.5 },
    { ...jobs, attempt: 1, factor: Number.NaN },
  ])("throws on %o, which no caller can mean", (backoff) => {
    expect(() => fullJitter(backoff, almostOne)).toThrow(RangeError);
  });
});
