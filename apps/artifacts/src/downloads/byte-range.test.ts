import { expect, test } from "vitest";
import { matchesTag, parseByteRange } from "./byte-range.ts";

test.each([
  ["bytes=0-0", 0, 0],
  ["bytes=0-9", 0, 9],
  ["bytes=0-", 0, 9],
  ["bytes=9-", 9, 9],
  ["bytes=3-5", 3, 5],
  ["bytes=3-99", 3, 9],
  ["bytes=3-999999999999999", 3, 9],
  ["bytes=-1", 9, 9],
  ["bytes=-10", 0, 9],
  ["bytes=-11", 0, 9],
  ["BYTES=1-2", 1, 2],
  ["bytes= 1-2 ", 1, 2],
])("of 10 bytes, %s is %i to %i", (header, start, end) => {
  expect(parseByteRange(header, 10)).toEqual({ start, end });
});

test.each(["bytes=10-", "bytes=10-20", "bytes=999999999999999-", "bytes=-0"])(
  "of 10 bytes, %s asks for nothing that is there",
  (header) => {
    expect(parseByteRange(header, 10)).toBe("UNSATISFIABLE");
  },
);

test.each([
  undefined,
  "",
  "bytes",
  "bytes=",
  "bytes=-",
  "bytes=5-4",
  "bytes=a-b",
  "bytes=1a-2",
  "bytes=1-2x",
  "bytes=0x1-2",
  "bytes=+1-2",
  "bytes=1.5-2",
  "bytes=--1",
  "bytes=1--2",
  "bytes=0-0,2-2",
  `bytes=${"0-0,".repeat(4000)}0-0`,
  "bytes=9999999999999999-",
  "items=0-1",
  "bytes 0-1",
])("%s is answered in full", (header) => {
  expect(parseByteRange(header, 10)).toBe("WHOLE");
});

test("no bytes of nothing can be had", () => {
  expect(parseByteRange("bytes=0-", 0)).toBe("UNSATISFIABLE");
  expect(parseByteRange("bytes=-5", 0)).toBe("UNSATISFIABLE");
  expect(parseByteRange(undefined, 0)).toBe("WHOLE");
});

test("tags match by themselves, in a list, by the star, and weakly only where that is allowed", () => {
  expect(matchesTag('"a"', '"a"', "STRONG")).toBe(true);
  expect(matchesTag('"b", "a"', '"a"', "STRONG")).toBe(true);
  expect(matchesTag("*", '"a"', "STRONG")).toBe(true);
  expect(matchesTag('W/"a"', '"a"', "WEAK")).toBe(true);
  expect(matchesTag('W/"a"', '"a"', "STRONG")).toBe(false);
  expect(matchesTag("a", '"a"', "WEAK")).toBe(false);
});
