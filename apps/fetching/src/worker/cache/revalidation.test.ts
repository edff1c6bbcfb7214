import type { CachedAnswer, StoredAnswer } from "@keble-scraper/db";
import { expect, test } from "vitest";
import { canRevalidate, isVouchedFor, toConditions, toRenewedResult } from "./revalidation.ts";

const answer = { etag: '"1"', lastModified: null } as CachedAnswer;
const stored = {
  result: {
    httpStatus: 200,
    headers: { "content-type": "text/html", "content-length": "5", age: "1" },
    fromCache: false,
  },
} as unknown as StoredAnswer;

test("only an answer with a validator is asked for, and only by routes that carry headers to the target", () => {
  expect(canRevalidate(answer, "DIRECT")).toBe(true);
  expect(canRevalidate(answer, "RESIDENTIAL")).toBe(true);
  expect(canRevalidate(answer, "UNLOCKER")).toBe(false);
  expect(canRevalidate(answer, "LOCAL_RENDER")).toBe(false);
  expect(canRevalidate({ ...answer, etag: null }, "DIRECT")).toBe(false);
  expect(toConditions(answer)).toEqual({ "if-none-match": '"1"' });
  expect(toConditions({ ...answer, lastModified: "then" })).toEqual({
    "if-none-match": '"1"',
    "if-modified-since": "then",
  });
});

test.each<[Record<string, string | string[]>, boolean]>([
  [{}, true],
  [{ etag: '"1"' }, true],
  [{ etag: 'W/"1"' }, true],
  [{ etag: '"2"' }, false],
  [{ etag: ['"1"', '"2"'] }, false],
])('A7 a 304 with %j vouches for an answer of ETag "1": %j', (headers, isVouched) => {
  const finalUrl = "https://shop.example.com/";
  const again = { answer, stored: { ...stored, result: { ...stored.result, finalUrl } } };
  expect(isVouchedFor(again, { finalUrl, headers })).toBe(isVouched);
  expect(isVouchedFor(again, { finalUrl: `${finalUrl}2`, headers })).toBe(false);
  expect(isVouchedFor({ ...again, answer: { ...answer, etag: null } }, { finalUrl, headers })).toBe(true);
});

test("a 304 renews the headers of the answer, and says nothing of its body or its connection", () => {
  const headers = {
    age: "2",
    "x-new": "n",
    "content-length": "0",
    "content-type": "a/b",
    connection: "close",
    "set-cookie": ["a=1"],
  };
  expect(toRenewedResult({ answer, stored }, headers)).toEqual({
    httpStatus: 200,
    headers: { "content-type": "text/html", "content-length": "5", age: "2", "x-new": "n" },
    fromCache: true,
    ageSeconds: 0,
  });
});

test("headers that would outgrow their bound stay as they were", () => {
  const renewed = toRenewedResult({ answer, stored }, { "x-new": "n".repeat(16_384) });
  expect(renewed.headers).toEqual(stored.result.headers);
});
