import { describe, expect, it } from "vitest";
import { parseRetryAfter } from "./retry-after.ts";

const NOW = Date.UTC(2026, 10, 30, 12);

describe("parseRetryAfter", () => {
  it.each([
    ["0", 0],
    ["3", 3_000],
    ["3.5", 3_500],
    [" 7 ", 7_000],
    ["+5", 5_000],
    [".5", 500],
    ["5.", 5_000],
    ["1e3", 1_000_000],
    ["1E-2", 10],
    ["-5", 0],
    ["-0", 0],
    ["-inf", 0],
    ["inf", Infinity],
    ["Infinity", Infinity],
    ["+INF", Infinity],
    ["9".repeat(400), Infinity],
    ["86400", 86_400_000],
  ])("F3 reads %j as %d ms", (value, expected) => {
    expect(parseRetryAfter(value, NOW)).toBe(expected);
  });

  it.each([
    "",
    "   ",
    "nan",
    "1_000",
    "0x10",
    "5s",
    "5, 6",
    "5 6",
    ".",
    "e3",
    "1e",
    "--5",
    "garbage",
    "garbage 1",
    "2099-10-21T07:28:00Z",
    "2099-10-21",
    "Mon, 32 Oct 2099 07:28:00 GMT",
    "٥",
  ])("F3 guesses nothing from %j", (value) => {
    expect(parseRetryAfter(value, NOW)).toBeNull();
  });

  it.each([null, undefined])("F3 reads a missing header (%s) as nothing", (value) => {
    expect(parseRetryAfter(value, NOW)).toBeNull();
  });

  it.each([
    ["Mon, 30 Nov 2026 12:02:00 GMT", 120_000],
    ["Monday, 30-Nov-26 12:02:00 GMT", 120_000],
    ["Mon Nov 30 12:02:00 2026", 120_000],
    ["Mon, 30 Nov 2026 14:02:00 +0200", 120_000],
    ["Mon, 30 Nov 2026 12:02:00", 120_000],
    ["Mon, 30 Nov 2026 12:02:00 -0000", 120_000],
    ["Mon, 30 Nov 2026 12:00:00 GMT", 0],
    ["Mon, 30 Nov 2026 11:00:00 GMT", 0],
    ["Sun, 06 Nov 1994 08:49:37 GMT", 0],
  ])("F3 measures the date %j from the given now", (value, expected) => {
    expect(parseRetryAfter(value, NOW)).toBe(expected);
  });

  it("F3 rounds up to the millisecond and adds none of its own", () => {
    expect(parseRetryAfter("0.0001", NOW)).toBe(1);
    expect(parseRetryAfter("1.005", NOW)).toBe(1_005);
    expect(parseRetryAfter("2.007", NOW)).toBe(2_007);
    expect(parseRetryAfter("0.067", NOW)).toBe(67);
    expect(parseRetryAfter("Mon, 30 Nov 2026 12:00:01 GMT", NOW + 0.25)).toBe(1_000);
  });

  it("F3 never answers less than zero, NaN or minus zero", () => {
    for (const value of ["-5", "-0", "-.0", "-1e9", "-infinity", "Thu, 01 Jan 1970 00:00:00 GMT"]) {
      expect(Object.is(parseRetryAfter(value, NOW), 0)).toBe(true);
    }
  });
});
