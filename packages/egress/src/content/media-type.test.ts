import { expect, test } from "vitest";
import { matchesContentTypes } from "./media-type.ts";

test.each([
  ["text/html; charset=utf-8", ["text/html"], true],
  ["TEXT/HTML", ["Text/Html"], true],
  ["text/html", ["application/json", "text/*"], true],
  ["text/html", ["*/*"], true],
  ["text/html", [], true],
  ["text/html", ["application/json"], false],
  ["text/html", ["text/htm", "text/html5", "tex/*", "*/html", "text"], false],
  ["texts/html", ["text/*"], false],
  [null, ["text/html"], true],
  ["  ", ["text/html"], true],
  ["nonsense", ["text/html"], false],
  [`text/html; x=${"y".repeat(2000)}`, ["text/html"], false],
])("%j against %j is %s", (declared, list, expected) => {
  expect(matchesContentTypes(declared, list)).toBe(expected);
});
