import { describe, expect, it } from "vitest";
import { parseHttpDate } from "./http-date.ts";

const NOW = Date.UTC(2026, 10, 30, 12);
const AT = Date.UTC(1994, 10, 6, 8, 49, 37);

describe("parseHttpDate", () => {
  it.each([
    ["Sun, 06 Nov 1994 08:49:37 GMT", AT],
    ["Sunday, 06-Nov-94 08:49:37 GMT", AT],
    ["Sun Nov  6 08:49:37 1994", AT],
    ["Sun Nov 06 08:49:37 1994", AT],
    ["  Sun, 06 Nov 1994 08:49:37 GMT ", AT],
    ["sun, 06 nov 1994 08:49:37 gmt", AT],
    ["Sun, 6 Nov 1994 08:49:37 GMT", AT],
    ["Sun, 06 Nov 1994 08:49:37", AT],
    ["Sun, 06 Nov 1994 08:49:37 UTC", AT],
    ["Sun, 06 Nov 1994 08:49:37 -0000", AT],
    ["Sun, 06 Nov 1994 10:49:37 +0200", AT],
    ["Sun, 06 Nov 1994 03:19:37 -0530", AT],
    ["Sat, 31 Dec 2016 23:59:60 GMT", Date.UTC(2017, 0, 1)],
    ["Thu, 29 Feb 2024 00:00:00 GMT", Date.UTC(2024, 1, 29)],
  ])("reads %j", (value, expected) => {
    expect(parseHttpDate(value, NOW)).toBe(expected);
  });

  it.each([
    ["", "empty"],
    ["2099-10-21T07:28:00Z", "ISO 8601"],
    ["2099-10-21", "an ISO date"],
    ["Mon, 32 Oct 2099 07:28:00 GMT", "day 32"],
    ["Sun, 29 Feb 2026 07:28:00 GMT", "29 February of a common year"],
    ["Wed, 00 Oct 2098 07:28:00 GMT", "day 0"],
    ["Wed, 21 Oct 2098 24:00:00 GMT", "hour 24"],
    ["Wed, 21 Oct 2098 07:60:00 GMT", "minute 60"],
    ["Wed, 21 Oct 2098 07:28:61 GMT", "second 61"],
    ["Wed, 21 Oct 2098 07:28:00 +2400", "a zone a day away"],
    ["Wed, 21 Oct 2098 07:28:00 +0160", "a zone of 60 minutes"],
    ["Wed, 21 Foo 2098 07:28:00 GMT", "an unknown month"],
    ["Xyz, 21 Oct 2098 07:28:00 GMT", "an unknown weekday"],
    ["Wed, 21 Oct 2098 07:28:00 PST", "a zone by name"],
    ["Wed, 21 Oct 2098 07:28:00 GMT, 5", "a list"],
    ["5, 6", "what Date.parse takes for a date in 2001"],
    ["garbage 1", "what Date.parse takes for a date in 2001"],
    ["1.5", "what Date.parse takes for a date in 2001"],
    [`Wed, 21 Oct 2098 07:28:00 GMT${" ".repeat(100)}`, "an endless value"],
  ])("refuses %j: %s", (value) => {
    expect(parseHttpDate(value, NOW)).toBeNull();
  });

  it.each([null, undefined])("reads %s as absent", (value) => {
    expect(parseHttpDate(value, NOW)).toBeNull();
  });

  it("takes a two-digit year up to 50 years ahead for the future and beyond that for the past", () => {
    expect(parseHttpDate("Monday, 30-Nov-76 12:00:00 GMT", NOW)).toBe(Date.UTC(2076, 10, 30, 12));
    expect(parseHttpDate("Monday, 30-Nov-76 12:00:01 GMT", NOW)).toBe(Date.UTC(1976, 10, 30, 12, 0, 1));
    expect(parseHttpDate("Sunday, 06-Nov-60 08:49:37 GMT", NOW)).toBe(Date.UTC(2060, 10, 6, 8, 49, 37));
    expect(parseHttpDate("Monday, 04-Jan-10 00:00:00 GMT", Date.UTC(2099, 0, 1))).toBe(Date.UTC(2110, 0, 4));
  });

  it("does not move years below 100 into the last century", () => {
    expect(parseHttpDate("Sun, 06 Nov 0094 08:49:37 GMT", NOW)).toBeLessThan(Date.UTC(1000, 0));
  });
});
