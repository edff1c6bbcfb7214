import { expect, it } from "vitest";
import { readRange } from "./read-range.ts";

it.each([
  ["bytes=0-9", 100, { start: 0, end: 9 }],
  ["bytes=90-200", 100, { start: 90, end: 99 }],
  ["bytes=99-", 100, { start: 99, end: 99 }],
  ["bytes=-5", 100, { start: 95, end: 99 }],
  ["bytes=-500", 100, { start: 0, end: 99 }],
  ["bytes=100-", 100, "UNSATISFIABLE"],
  ["bytes=-0", 100, "UNSATISFIABLE"],
  ["bytes=0-", 0, "UNSATISFIABLE"],
  ["bytes=9-1", 100, null],
  ["bytes=-", 100, null],
  ["bytes=0-1,5-6", 100, null],
  ["lines=0-1", 100, null],
  [undefined, 100, null],
] as const)("%s of %s bytes", (header, size, range) => {
  expect(readRange(header, size)).toEqual(range);
});
