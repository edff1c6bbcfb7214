import { expect, test } from "vitest";
import { checkedPrefix, parseLocalName, SHARDS, toLocalPath } from "./local-names.ts";

const SHA = "ab".repeat(32);
const KEY = { sha256: SHA, generation: "0123456789abcdef" };

test("the file name of a key leads back to the key, in its own shard only", () => {
  const [shard = "", name = ""] = toLocalPath(KEY).split("/");
  expect(shard).toBe("ab");
  expect(parseLocalName(shard, name)).toEqual(KEY);
  expect(parseLocalName("ac", name)).toBeNull();
});

test("a temp file and foreign files are no objects", () => {
  for (const name of ["temp-x", SHA, `${SHA}.`, `${SHA}.x`, `${SHA}-0123456789abcdef`, ".", ""]) {
    expect(parseLocalName("ab", name)).toBeNull();
  }
});

test("there are 256 shards, in the order of the hashes", () => {
  expect(SHARDS.length).toBe(256);
  expect(SHARDS.toSorted()).toEqual(SHARDS);
});

test("a key that did not come from the parser makes no path", () => {
  expect(() => toLocalPath({ sha256: SHA, generation: "../../../etc/x" })).toThrow("not a binary key");
  expect(() => toLocalPath({ sha256: "../..", generation: KEY.generation })).toThrow("not a binary key");
});

test("a prefix can't leave the directory", () => {
  expect(checkedPrefix("artifacts/dev_1")).toBe("artifacts/dev_1");
  for (const prefix of ["", "/", "..", "a/..", "a//b", "/a", "a/", "a.b", "A", "a/b/c/d/e", "a\n", "a\\b", "a\u0000"]) {
    expect(() => checkedPrefix(prefix)).toThrow("not a store prefix");
  }
});
