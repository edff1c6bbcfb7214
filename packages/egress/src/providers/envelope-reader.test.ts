import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StageFailure } from "../transport/body-stage.ts";
import { createEnvelopeReader } from "./envelope-reader.ts";

/** Feeds `bytes` in chunks of `size`. */
function read(bytes: Buffer, size = bytes.length, max = 1_000_000): { skeleton: string; result: Buffer | null } {
  const reader = createEnvelopeReader(max);
  for (let at = 0; at < bytes.length; at += size) void reader.write(bytes.subarray(at, at + size));
  void reader.end();
  const chunks = reader.result();
  return { skeleton: reader.skeleton(), result: chunks === null ? null : Buffer.concat(chunks) };
}

/** JSON with every character of its texts as an escape. */
function escaped(value: unknown): string {
  return JSON.stringify(value).replace(/[^\x20-\x7e]|[<>]/gu, (c) =>
    Array.from({ length: c.length }, (_, i) => `\\u${c.charCodeAt(i).toString(16).padStart(4, "0")}`).join(""),
  );
}

describe("the reader of an envelope", () => {
  it("reads any text that JSON can write, in chunks of any size, as a parser would", () => {
    fc.assert(
      fc.property(
        fc.record({ result: fc.string({ unit: "binary", maxLength: 200 }), meta: fc.json({ maxDepth: 2 }) }),
        fc.integer({ min: 1, max: 50 }),
        fc.constantFrom(JSON.stringify, escaped, (value: unknown) => JSON.stringify(value, null, 2)),
        ({ result, meta }, size, write) => {
          const envelope = {
            success: true,
            meta: JSON.parse(meta) as unknown,
            result,
            errors: [{ result: "not this" }],
          };
          const made = read(Buffer.from(write(envelope)), size);
          // What no UTF-8 can hold is the replacement character to both.
          expect(made.result?.toString("utf8")).toBe(Buffer.from(result).toString("utf8"));
          expect(JSON.parse(made.skeleton)).toEqual(JSON.parse(JSON.stringify({ ...envelope, result: "" })));
        },
      ),
      { numRuns: 300 },
    );
  });

  it.each([
    ['{"success":true}', null],
    ['{"result":null}', null],
    ['{"result":["a"]}', null],
    ['{"result":{"result":"a"}}', null],
    ['{"a":{"result":"x"},"result":"y"}', "y"],
    ['{"a":"result","b":"x"}', null],
    ['{"res\\u0075lt":"y"}', "y"],
    ['{"result" : "y" , "a":1}', "y"],
    ['["result","x"]', null],
    ['{"result":""}', ""],
    ['{"result":"\\ud83d\\ude00"}', "\u{1f600}"],
    ['{"result":"\\ud83dx"}', "\ufffdx"],
    ['{"result":"\\ude00\\ud83d"}', "\ufffd\ufffd"],
  ])("%s has the result %j", (json, result) => {
    for (const size of [1, 2, 7, json.length]) {
      expect(read(Buffer.from(json), size).result?.toString("utf8") ?? null).toBe(result);
    }
  });

  it.each([
    ["an escape that is none", '{"result":"a\\qb"}', "HTTP_PROTOCOL"],
    ["half a code unit", '{"result":"\\u12g4"}', "HTTP_PROTOCOL"],
    ["a bare control character", '{"result":"a\nb"}', "HTTP_PROTOCOL"],
    ["a second result", '{"result":"a","result":"b"}', "HTTP_PROTOCOL"],
    ["an endless rest", `{"a":"${"x".repeat(70_000)}"}`, "HTTP_PROTOCOL"],
    ["an endless result", `{"result":"${"x".repeat(1_001)}"}`, "DECODED_TOO_LARGE"],
  ])("W9 refuses %s", (_what, json, kind) => {
    const thrown = (() => {
      try {
        read(Buffer.from(json), 100, 1_000);
        return null;
      } catch (error) {
        return error;
      }
    })();
    expect(thrown).toBeInstanceOf(StageFailure);
    expect((thrown as StageFailure).kind).toBe(kind);
  });

  it("W9 takes exactly as much as it may, counted in the page's own bytes", () => {
    const page = '"\u00e9'.repeat(1_000);
    const json = Buffer.from(escaped({ success: true, result: page }));
    expect(read(json, 64, Buffer.byteLength(page)).result?.length).toBe(Buffer.byteLength(page));
    expect(() => read(json, 64, Buffer.byteLength(page) - 1)).toThrow(StageFailure);
  });
});
