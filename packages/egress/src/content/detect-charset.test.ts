import fc from "fast-check";
import { expect, test } from "vitest";
import { detectCharset } from "./detect-charset.ts";

/** Text in windows-1251, where the Russian alphabet stands from 0xC0 on. */
const CYRILLIC = Buffer.from(
  Array.from("Москва является столицей России, и в ней живет много людей. Все они каждый день едут на работу.").map(
    (letter) => {
      const code = letter.codePointAt(0) ?? 0;
      return code < 0x410 ? code : code - 0x410 + 0xc0;
    },
  ),
);
const NOISE = Buffer.from(Array.from({ length: 400 }, (_, index) => 32 + ((index * 7919) % 224)));

test.each<[string, Uint8Array | string, string | null, string | null, string | null]>([
  ["header", "x", "text/html; charset=UTF-8", "utf-8", "utf-8"],
  ["label of the standard", "x", 'text/html; charset="latin1"', "latin1", "windows-1252"],
  ["mark over header", "\ufeffx", "text/html; charset=iso-8859-1", "iso-8859-1", "utf-8"],
  ["mark of UTF-16", Buffer.from([0xff, 0xfe, 0x78, 0]), null, null, "utf-16le"],
  ["header over meta", "<meta charset=windows-1251>", "text/html; charset=utf-8", "utf-8", "utf-8"],
  ["meta", "<meta charset=windows-1251>", "text/html", null, "windows-1251"],
  [
    "meta, undeclared type",
    '<meta http-equiv=content-type content="text/html; charset=Shift_JIS">',
    null,
    null,
    "shift_jis",
  ],
  ["meta outside HTML", "<meta charset=windows-1251>", "text/plain", null, "utf-8"],
  ["XML declaration", '<?xml version="1.0" encoding="ISO-8859-2"?><a/>', "application/rss+xml", null, "iso-8859-2"],
  ["XML declaration in XHTML", '<?xml version="1.0" encoding="ISO-8859-2"?><html>', "text/html", null, "iso-8859-2"],
  ["unknown label", "<meta charset=koi8-r>", "text/html; charset=Klingon", "klingon", "koi8-r"],
  ["well-formed UTF-8", "caf\u00e9", "text/plain", null, "utf-8"],
  ["UTF-8 that is cut off", Buffer.from("caf\u00e9").subarray(0, 4), "text/plain", null, "utf-8"],
  ["statistics", CYRILLIC, "text/plain", null, "windows-1251"],
  ["noise", NOISE, "text/plain", null, null],
  ["no text", Buffer.from([0, 1, 2, 255]), "application/octet-stream", null, null],
  ["no text, whatever the header says", Buffer.from([0x89, 0x50, 0, 1]), "image/png; charset=utf-8", "utf-8", null],
  ["UTF-16 by header", Buffer.from([0x78, 0, 0x79, 0]), "text/plain; charset=utf-16le", "utf-16le", "utf-16le"],
  ["an empty body", "", "text/plain; charset=utf-8", "utf-8", null],
  ["a page that crashes the prescan", "<meta http-equiv=content-type content=charset>", "text/html", null, "utf-8"],
  ["a page that crashes it otherwise", '<meta content="charset  ', "text/html", null, "utf-8"],
])("%s", (_name, body, contentType, declared, detected) => {
  expect(detectCharset(Buffer.from(body), contentType)).toEqual({ declared, detected });
});

test("hostile bytes and headers never throw", () => {
  expect.hasAssertions();
  const piece = fc.constantFrom(
    "<meta ",
    "charset",
    "=",
    '"',
    "'",
    ">",
    "content",
    "http-equiv",
    "<!--",
    "/",
    " ",
    "\u0000",
    "\u00e9",
  );
  const page = fc.array(piece, { maxLength: 12 }).map((pieces) => Buffer.from(pieces.join("")));
  fc.assert(
    fc.property(fc.oneof(page, fc.uint8Array({ maxLength: 200 })), fc.option(fc.string()), (bytes, label) => {
      const { detected } = detectCharset(bytes, label === null ? null : `text/html; charset=${label}`);
      expect(detected ?? "").toMatch(/^[\s\S]{0,64}$/);
    }),
    { numRuns: 2000 },
  );
});
