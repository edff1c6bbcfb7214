import { expect, it } from "vitest";
import { compareKeys, insertSorted, positionOf } from "./sorted-keys.ts";

it("keys are in the order of their UTF-8 bytes, also beyond the first 65,536 characters", () => {
  const keys: string[] = [];
  const given = ["b", "\u{1F600}", "a/b", "a", "\uFFEE", "a-b", "ä", "a\u{10000}", "a\uE000", ""];
  for (const key of given) insertSorted(keys, key);
  expect(keys).toEqual(given.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other))));
  for (const key of given) expect(keys[positionOf(keys, key)]).toBe(key);
  expect(compareKeys("a", "a")).toBe(0);
});
