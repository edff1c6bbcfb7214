import { expect, test } from "vitest";
import { toServedType } from "./served-type.ts";

test.each([
  ["text/plain", "text/plain"],
  ["Text/Plain ; Charset=UTF-8", "text/plain; charset=utf-8"],
  ['text/csv; header=present; charset="windows-1252"', "text/csv; charset=windows-1252"],
  ["text/plain; charset=x y", "text/plain"],
  ["text/plain; charset=utf-8\r\nx: y", "text/plain"],
  ["application/json; charset=utf-8", "application/json"],
  ["image/png", "image/png"],
  ["application/pdf", "application/pdf"],
])("the inert type %s is served as %s", (declared, served) => {
  expect(toServedType(declared)).toBe(served);
});

// Each of these can run script in a browser, or be sniffed into something that does.
test.each([
  "text/html",
  "TEXT/HTML; charset=utf-8",
  "application/xhtml+xml",
  "image/svg+xml",
  "text/xml",
  "application/xml",
  "application/rss+xml",
  "text/javascript",
  "application/javascript",
  "application/ecmascript",
  "text/css",
  "multipart/related",
  "multipart/x-mixed-replace",
  "message/rfc822",
  "application/x-shockwave-flash",
  "application/wasm",
  "text/vtt",
  "text/xsl",
  "text/html, text/plain",
  "text/plain, text/html",
  "*/*",
  "text/",
  "nonsense",
  "",
  `text/plain;${" ".repeat(1000)}`,
])("%s is served as plain octets", (declared) => {
  expect(toServedType(declared)).toBe("application/octet-stream");
});

test("an undeclared type is served as plain octets", () => {
  expect(toServedType(null)).toBe("application/octet-stream");
});
