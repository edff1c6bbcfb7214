import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { createSinkStage } from "./body-stage.ts";
import { type ContentCoding, createDecoders, parseContentCodings } from "./content-codings.ts";

const ENCODERS = { gzip: gzipSync, br: brotliCompressSync, deflate: deflateSync } as const;

async function decode(
  codings: readonly ContentCoding[],
  body: Buffer,
  chunkBytes: number,
  bytesMax = 1_000_000,
): Promise<string> {
  const chunks: Buffer[] = [];
  const last = createSinkStage({ write: (chunk) => void chunks.push(Buffer.from(chunk)) }, bytesMax);
  const stage = createDecoders(codings, last, bytesMax);
  for (let at = 0; at < body.length; at += chunkBytes) await stage.write(body.subarray(at, at + chunkBytes));
  await stage.end();
  return Buffer.concat(chunks).toString();
}

describe("parseContentCodings", () => {
  it.each([
    [[], []],
    [["gzip"], ["gzip"]],
    [["GZIP , br"], ["gzip", "br"]],
    [
      ["gzip", "br"],
      ["gzip", "br"],
    ],
    [["identity,,gzip"], ["gzip"]],
    [["x-gzip"], ["gzip"]],
    [["zstd"], null],
    [["gzip, compress"], null],
    [["gzip,gzip,gzip"], ["gzip", "gzip", "gzip"]],
    [["gzip,gzip,gzip,gzip"], null],
  ])("W9 reads %j as %j", (values, expected) => {
    expect(parseContentCodings(values, 3)).toEqual(expected);
  });
});

describe("createDecoders", () => {
  const text = "some text, ".repeat(2_000);

  it.each([1, 7, 100_000])("undoes every pair of codings, fed %d bytes at a time", async (chunkBytes) => {
    for (const first of ["gzip", "br", "deflate"] as const) {
      for (const second of ["gzip", "br", "deflate"] as const) {
        const body = ENCODERS[second](ENCODERS[first](text));
        expect(await decode([first, second], body, chunkBytes)).toBe(text);
      }
    }
  });

  it.each([1, 100_000])("takes deflate with and without a zlib header, fed %d bytes at a time", async (chunkBytes) => {
    expect(await decode(["deflate"], deflateSync(text), chunkBytes)).toBe(text);
    expect(await decode(["deflate"], deflateRawSync(text), chunkBytes)).toBe(text);
  });

  it("an empty body is empty under every coding", async () => {
    expect(await decode(["gzip", "br"], Buffer.alloc(0), 1)).toBe("");
  });

  it.each(["gzip", "br", "deflate"] as const)("a cut %s body is truncated", async (coding) => {
    const body = ENCODERS[coding](text);
    await expect(decode([coding], body.subarray(0, body.length - 5), 10)).rejects.toMatchObject({
      kind: "DECODE_TRUNCATED",
    });
  });

  it.each(["gzip", "br", "deflate"] as const)("a corrupt %s body is a decoding error", async (coding) => {
    await expect(decode([coding], Buffer.from("\u0001this is nothing of the kind"), 3)).rejects.toMatchObject({
      kind: expect.stringMatching(/^DECODE_(?:ERROR|TRUNCATED)$/) as string,
    });
  });

  it("W9 every stage is capped, not only the last one", async () => {
    // A gzip header with a file name of 5 MB: the outer layer unpacks to far more than the cap, the inner one to a word.
    const packed = gzipSync("small");
    const name = Buffer.concat([Buffer.from([0x1f, 0x8b, 8, 8]), packed.subarray(4, 10), Buffer.alloc(5_000_000, "n")]);
    const inner = Buffer.concat([name, Buffer.alloc(1), packed.subarray(10)]);
    expect(await decode(["gzip"], inner, 65_536)).toBe("small");
    await expect(decode(["gzip", "gzip"], gzipSync(inner), 65_536, 100_000)).rejects.toMatchObject({
      kind: "DECODED_TOO_LARGE",
    });
    const zeros = Buffer.alloc(5_000_000);
    await expect(decode(["gzip"], gzipSync(zeros), 65_536, 100_000)).rejects.toMatchObject({
      kind: "DECODED_TOO_LARGE",
    });
  });
});
