import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { SNIFF_BYTES_MAX, sniffType } from "./sniff-type.ts";

const PNG = Buffer.from("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489", "hex");

test.each<[string, Uint8Array | string, string | null, string | null]>([
  ["an empty body", "", "text/html", null],
  ["a page", "<!DOCTYPE html><html><p>x", null, "text/html"],
  ["a page declared as text", "  <html><p>x", "text/plain", "text/html"],
  ["a page declared as an image", "<!doctype html><p>", "image/png", "text/html"],
  ["a page declared as XHTML", "<!DOCTYPE html><html><p>x", "application/xhtml+xml", "application/xhtml+xml"],
  ["an image declared as a page", PNG, "text/html", "image/png"],
  ["a PDF", "%PDF-1.7\n", "application/octet-stream", "application/pdf"],
  ["gzip", gzipSync("x"), "text/html", "application/gzip"],
  ["JSON, declared", '{"a":1}', "Application/JSON; charset=utf-8", "application/json"],
  ["JSON of a kind", '{"a":1}', "application/ld+json", "application/ld+json"],
  ["JSON, undeclared", '{"a":1}', null, "text/plain"],
  ["a fragment of a page", "Hello <b>you</b>", "text/html", "text/html"],
  ["text declared as an image", "hello", "image/png", "text/plain"],
  ["bytes declared as JSON", Buffer.from([0, 1, 2, 3]), "application/json", "application/octet-stream"],
  ["XML", '<?xml version="1.0"?><a/>', null, "application/xml"],
  ["a feed", '<?xml version="1.0"?><rss/>', "application/rss+xml", "application/rss+xml"],
  ["XHTML served as HTML", '<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "x"><html>', "text/html", "text/html"],
  ["XHTML, undeclared", '<?xml version="1.0"?><html xmlns="x">', null, "application/xhtml+xml"],
  ["a nonsense declaration", "hello", "\u0000\u0000;;;", "text/plain"],
])("%s is told by its bytes", async (_name, body, declared, expected) => {
  expect(await sniffType(Buffer.from(body), declared)).toBe(expected);
});

test("hostile bytes never throw, and only the first 4,096 are read", async () => {
  const signature = fc.constantFrom(
    PNG,
    Buffer.from("PK\u0003\u0004"),
    Buffer.from("3026b2758e66cf11a6d900aa0062ce6c", "hex"),
    gzipSync("x"),
    Buffer.from("ID3\u0004"),
    Buffer.from("<?xml "),
    Buffer.from("RIFF"),
  );
  await fc.assert(
    fc.asyncProperty(
      signature,
      fc.uint8Array({ maxLength: 300 }),
      fc.option(fc.string()),
      async (head, tail, declared) => {
        const sniffed = await sniffType(Buffer.concat([head, tail]), declared);
        expect(sniffed).toMatch(/^[^/]+\/[^/]+$/);
      },
    ),
    { numRuns: 300 },
  );
  const far = Buffer.concat([Buffer.alloc(SNIFF_BYTES_MAX, "x"), Buffer.from([0])]);
  expect(await sniffType(far, null)).toBe("text/plain");
});
