import { expect, test } from "vitest";
import { formatOwnerMark, parseOwnerMark } from "./owner-mark.ts";

const CLAIM = "0b2f6c1e-6f0e-4a0b-9b8e-0d7c5a4f3e21";

test("A4 a mark is read back as it was written", () => {
  for (const owner of ["a", "production/main", "A-z_0.9/x".padEnd(128, "y")]) {
    expect(parseOwnerMark(formatOwnerMark({ owner, claim: CLAIM }))).toEqual({ owner, claim: CLAIM });
  }
});

test.each([
  ["nothing", ""],
  ["no JSON", "owner"],
  ["an array", `["a","${CLAIM}"]`],
  ["another order", `{"claim":"${CLAIM}","owner":"a"}`],
  ["another field", `{"owner":"a","claim":"${CLAIM}","more":1}`],
  ["white space", `{"owner": "a","claim":"${CLAIM}"}`],
  ["a line feed at the end", `{"owner":"a","claim":"${CLAIM}"}\n`],
  ["an empty owner", `{"owner":"","claim":"${CLAIM}"}`],
  ["an owner with an escape", `{"owner":"\\u0061","claim":"${CLAIM}"}`],
  ["a long owner", `{"owner":"${"a".repeat(129)}","claim":"${CLAIM}"}`],
  ["an upper-case claim", `{"owner":"a","claim":"${CLAIM.toUpperCase()}"}`],
  ["a claim that is no UUID", `{"owner":"a","claim":"${"-".repeat(36)}"}`],
  ["a doubled field", `{"owner":"a","owner":"b","claim":"${CLAIM}"}`],
  ["a text of 1 MiB", "x".repeat(1_048_576)],
])("A4 a mark with %s is none", (_, text) => {
  expect(parseOwnerMark(text)).toBeNull();
});

test("a mark that could not be read back is not written", () => {
  expect(() => formatOwnerMark({ owner: "", claim: CLAIM })).toThrow("not an owner's mark");
  expect(() => formatOwnerMark({ owner: "a b", claim: CLAIM })).toThrow("not an owner's mark");
  expect(() => formatOwnerMark({ owner: "a", claim: "x" })).toThrow("not an owner's mark");
});
