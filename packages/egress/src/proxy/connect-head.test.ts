import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CONNECT_HEAD_BYTES_MAX, createConnectHeadReader, writeConnect } from "./connect-head.ts";

const read = (...chunks: (string | Buffer)[]) => {
  const reader = createConnectHeadReader();
  return chunks.map((chunk) => reader(Buffer.from(chunk as string, "latin1"))).at(-1)!;
};
const headOf = (...chunks: (string | Buffer)[]) => {
  const result = read(...chunks);
  if (result.kind !== "HEAD") throw new Error(result.kind);
  return result.head;
};

describe("createConnectHeadReader", () => {
  it("reads status, reason and headers, names in any case, repeats in order", () => {
    const head = headOf("HTTP/1.1 502 Bad Gateway\r\nX-BRD-Err-Code: target_40001\r\nA: 1\r\na:  2 \r\n\r\n");
    expect([head.httpStatus, head.reason]).toEqual([502, "Bad Gateway"]);
    expect(head.value("x-brd-err-code")).toBe("target_40001");
    expect(head.values("a")).toEqual(["1", "2"]);
    expect(head.value("a")).toBe("1, 2");
    expect(head.value("absent")).toBeNull();
  });

  it("reads a status line without a reason phrase, of HTTP/1.0 too", () => {
    expect(headOf("HTTP/1.0 200\r\n\r\n").httpStatus).toBe(200);
  });

  it("P11 keeps every byte behind the head, wherever the chunks were cut", () => {
    const bytes = Buffer.from("HTTP/1.1 200 OK\r\nVia: x\r\n\r\nglued\r\n\r\nbytes", "latin1");
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 6 }), (cuts) => {
        const points = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        const reader = createConnectHeadReader();
        let rest: Buffer | null = null;
        for (const [index, from] of points.slice(0, -1).entries()) {
          const chunk = bytes.subarray(from, points[index + 1]);
          if (rest !== null) {
            rest = Buffer.concat([rest, chunk]);
            continue;
          }
          const result = reader(chunk);
          if (result.kind === "HEAD") ({ rest } = result.head);
          else expect(result.kind).toBe("MORE");
        }
        expect(rest?.toString()).toBe("glued\r\n\r\nbytes");
      }),
    );
  });

  it("skips interim answers, whose bytes count", () => {
    expect(headOf("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n").httpStatus).toBe(200);
    expect(read("HTTP/1.1 100 Continue\r\n\r\n".repeat(400)).kind).toBe("TOO_LARGE");
  });

  it("P9 gives up at 8 KiB without an end, and not before", () => {
    const fill = (bytes: number) => `HTTP/1.1 200 OK\r\nA: ${"x".repeat(bytes - 20)}`;
    expect(read(fill(CONNECT_HEAD_BYTES_MAX)).kind).toBe("MORE");
    expect(read(fill(CONNECT_HEAD_BYTES_MAX + 1)).kind).toBe("TOO_LARGE");
    expect(read(`${fill(CONNECT_HEAD_BYTES_MAX - 4)}\r\n\r\n${"x".repeat(10_000)}`).kind).toBe("HEAD");
  });

  it.each([
    ["another protocol", "SSH-2.0-OpenSSH_9.6\r\n"],
    ["its first byte", "S"],
    ["HTML", "<html>"],
    ["TLS", Buffer.from([0x15, 0x03, 0x01])],
    ["HTTP/2", "HTTP/2 200\r\n\r\n"],
    ["a two-digit status", "HTTP/1.1 20 OK\r\n\r\n"],
    ["a folded line", "HTTP/1.1 200 OK\r\nA: 1\r\n 2\r\n\r\n"],
    ["a bare CR in a value", "HTTP/1.1 200 OK\r\nA: 1\r2\r\n\r\n"],
    ["a bare LF in a value", "HTTP/1.1 200 OK\r\nA: 1\nB: 2\r\n\r\n"],
    ["NUL", "HTTP/1.1 200 OK\r\nA: 1\u0000\r\n\r\n"],
    ["a blank before the colon", "HTTP/1.1 200 OK\r\nA : 1\r\n\r\n"],
    ["no colon", "HTTP/1.1 200 OK\r\nA\r\n\r\n"],
  ])("refuses %s", (_what, bytes) => {
    expect(read(bytes).kind).toBe("MALFORMED");
  });

  it("never throws, whatever the bytes", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 60 })), (chunks) => {
        const reader = createConnectHeadReader();
        const kinds = chunks.map((chunk) => reader(Buffer.from(chunk)).kind);
        expect(["MORE", "MALFORMED", "HEAD", "TOO_LARGE"]).toEqual(expect.arrayContaining(kinds));
      }),
    );
  });
});

describe("writeConnect", () => {
  it("P1 asks for the authority in the request line and in Host", () => {
    expect(writeConnect("93.184.216.34:443", "Basic eDp5").toString()).toBe(
      "CONNECT 93.184.216.34:443 HTTP/1.1\r\nHost: 93.184.216.34:443\r\nProxy-Authorization: Basic eDp5\r\n\r\n",
    );
  });

  it("sends no credentials where there are none", () => {
    expect(writeConnect("a:1", null).toString()).not.toContain("Authorization");
  });

  it("lets no control character through", () => {
    expect(() => writeConnect("a:1\r\nX: y", null)).toThrow();
    expect(() => writeConnect("a:1", "Basic x\nX: y")).toThrow();
  });
});
