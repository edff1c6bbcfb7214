import { expect, it } from "vitest";
import { readPartList } from "./read-part-list.ts";

const part = (number: number | string, etag: string) =>
  `<Part><ETag>${etag}</ETag><PartNumber>${number}</PartNumber></Part>`;
const list = (...parts: string[]) =>
  `<?xml version="1.0"?><CompleteMultipartUpload xmlns="x">${parts.join("")}</CompleteMultipartUpload>`;

it("parts are read however their ETags are quoted and cased", () => {
  const text = list(part(1, '"Ab12"'), part(3, "&quot;cd34&quot;"), part(10_000, "ef56"));
  expect(readPartList(text)).toEqual({
    ok: true,
    value: [
      { partNumber: 1, etag: "ab12" },
      { partNumber: 3, etag: "cd34" },
      { partNumber: 10_000, etag: "ef56" },
    ],
  });
});

it.each([
  ["nothing", "", "MalformedXML"],
  ["another document", "<Delete></Delete>", "MalformedXML"],
  ["a document that was cut", list(part(1, "ab")).slice(0, -5), "MalformedXML"],
  ["no parts", list(), "MalformedXML"],
  ["a part without a number", list(part("", "ab")), "MalformedXML"],
  ["a part without an ETag", list(part(1, "")), "MalformedXML"],
  ["parts out of order", list(part(2, "ab"), part(1, "cd")), "InvalidPartOrder"],
  ["a part twice", list(part(1, "ab"), part(1, "ab")), "InvalidPartOrder"],
])("refused: %s", (_what, text, code) => {
  expect(readPartList(text)).toMatchObject({ ok: false, refusal: { code } });
});
