import { expect, test } from "vitest";
import { toCacheReport } from "./cache-report.ts";

const report = (headers: Record<string, string | string[]>, mayShare = false) =>
  toCacheReport({ key: "k", mayShare }, { headers, redirectHeaders: [] });

test.each([
  ['"v1"', '"v1"'],
  ['W/"v1"', 'W/"v1"'],
  ['""', '""'],
  ["v1", null],
  ['"v1", "v2"', null],
  ['"v\u00001"', null],
  ['"v 1"', null],
  [`"${"a".repeat(1_023)}"`, null],
])("an ETag %j is kept as %j", (etag, kept) => {
  expect(report({ etag }).etag).toBe(kept);
});

test.each([
  ["Mon, 01 Jan 2024 00:00:00 GMT", "Mon, 01 Jan 2024 00:00:00 GMT"],
  ["yesterday", null],
  ["Mon, 01 Jan 2024 00:00:00 GMT\u0007", null],
  [`${" ".repeat(40)}Mon, 01 Jan 2024 00:00:00 GMT`, null],
])("a Last-Modified %j is kept as %j", (lastModified, kept) => {
  expect(report({ "last-modified": lastModified }).lastModified).toBe(kept);
});

test.each<[string, Record<string, string | string[]>, boolean]>([
  ["nothing said", {}, true],
  ["public", { "cache-control": "public, max-age=60" }, true],
  ["private", { "cache-control": "max-age=60, PRIVATE" }, false],
  ["private for a field", { "cache-control": 'private="x-user"' }, false],
  ["no-store", { "cache-control": "no-cache,no-store" }, false],
  ["a cookie", { "set-cookie": ["a=1"] }, false],
  ["Vary: *", { vary: "accept, *" }, false],
  ["Vary", { vary: "accept, cookie" }, true],
])("A7 an answer with %s is everybody's, where callers share: %j", (_what, headers, isShared) => {
  expect(report(headers, true)).toMatchObject({ isShared, marksOwn: !isShared });
  const behind = { headers: {}, redirectHeaders: [{}, headers, {}] };
  expect(toCacheReport({ key: "k", mayShare: true }, behind)).toMatchObject({ isShared, marksOwn: !isShared });
  expect(report(headers, false)).toMatchObject({ isShared: false, marksOwn: false });
});
