import { expect, test } from "vitest";
import { readLines } from "./read-lines.ts";

async function linesOf(chunks: readonly (string | Buffer)[], lineBytesMax?: number): Promise<(string | null)[]> {
  async function* source(): AsyncGenerator<Uint8Array> {
    for (const chunk of chunks) yield await Promise.resolve(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
  }
  const lines: (string | null)[] = [];
  for await (const { number, text } of readLines(source(), lineBytesMax)) {
    lines.push(text);
    expect(number).toBe(lines.length);
  }
  return lines;
}

test("lines are the same however the stream is cut", async () => {
  const text = "one\r\ntwo\n\nthré\nlast";
  const lines = ["one", "two", "", "thré", "last"];
  expect(await linesOf([text])).toEqual(lines);
  expect(await linesOf([`${text}\n`])).toEqual(lines);
  expect(await linesOf([...Buffer.from(text)].flatMap((byte) => [Buffer.of(byte), Buffer.alloc(0)]))).toEqual(lines);
  expect(await linesOf([])).toEqual([]);
});

test("a line over the limit is passed over, and the next one is read", async () => {
  expect(await linesOf(["12345678\n", "123456789\n", "1\n"], 8)).toEqual(["12345678", null, "1"]);
  expect(await linesOf(["1234", "5678", "9", "\n1"], 8)).toEqual([null, "1"]);
  expect(await linesOf(["1234", "56789"], 8)).toEqual([null]);
});
