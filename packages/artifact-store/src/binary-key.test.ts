import { expect, test } from "vitest";
import { createGeneration, formatBinaryKey, isGeneration, parseBinaryKey } from "./binary-key.ts";

const SHA = "ab".repeat(32);

test("a generation we make is one we accept, and never the same twice", () => {
  const made = new Set(Array.from({ length: 100 }, createGeneration));
  expect(made.size).toBe(100);
  expect([...made].every(isGeneration)).toBe(true);
});

test("a key is read back as it was written", () => {
  for (const generation of ["0123456789abcdef", "018f3c2a-7d11-7abc-8def-0123456789ab"]) {
    const key = { sha256: SHA, generation };
    expect(parseBinaryKey(formatBinaryKey(key))).toEqual(key);
  }
});

test.each([
  ["an upper-case hash", `${SHA.toUpperCase()}/0123456789abcdef`],
  ["a short hash", `${SHA.slice(1)}/0123456789abcdef`],
  ["no generation", SHA],
  ["an empty generation", `${SHA}/`],
  ["a step up", `${SHA}/../0123456789abcdef`],
  ["a step up as generation", `${SHA}/..`],
  ["a third part", `${SHA}/0123456789abcdef/x`],
  ["a NUL", `${SHA}/0123456789abcde\u0000`],
  ["a line feed at the end", `${SHA}/0123456789abcdef\n`],
  ["a percent escape", `${SHA}/%2e%2e%2f6789abcdef`],
  ["a backslash", `${SHA}\\0123456789abcdef`],
  ["another version of UUID", `${SHA}/018f3c2a-7d11-4abc-8def-0123456789ab`],
  ["an upper-case generation", `${SHA}/0123456789ABCDEF`],
])("%s is no key", (_, text) => {
  expect(parseBinaryKey(text)).toBeNull();
  const [sha256 = "", ...rest] = text.split("/");
  expect(() => formatBinaryKey({ sha256, generation: rest.join("/") })).toThrow("not a binary key");
});
