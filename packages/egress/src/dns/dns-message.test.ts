import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AddressType, readReply, writeQuestion } from "./dns-message.ts";

const NAME = "www.example.com";
const POINTER = Buffer.from([0xc0, 12]);

function question(type: AddressType = "A"): Buffer {
  const bytes = writeQuestion(NAME, type);
  if (bytes === null) throw new Error("no question");
  return bytes;
}

function record(type: number, ttl: number, data: Buffer, name = POINTER, recordClass = 1): Buffer {
  const head = Buffer.alloc(10);
  head.writeUInt16BE(type, 0);
  head.writeUInt16BE(recordClass, 2);
  head.writeUInt32BE(ttl, 4);
  head.writeUInt16BE(data.length, 8);
  return Buffer.concat([name, head, data]);
}

function reply(asked: Buffer, records: readonly Buffer[], flags = 0x8180, count = records.length): Buffer {
  const head = Buffer.from(asked);
  head.writeUInt16BE(flags, 2);
  head.writeUInt16BE(count, 6);
  return Buffer.concat([head, ...records]);
}

const V4 = Buffer.from([93, 184, 216, 34]);
const V6 = Buffer.from("26062800022000010248189325c81946", "hex");

describe("questions", () => {
  test("a question is the standard's bytes", () => {
    expect(question().toString("hex")).toBe("00000100000100000000000003777777076578616d706c6503636f6d0000010001");
    expect(question("AAAA").subarray(-4).toString("hex")).toBe("001c0001");
  });

  test.each(["", "a..b", ".a", "a.", `${"l".repeat(64)}.com`, `${`${"l".repeat(63)}.`.repeat(4)}com`])(
    "%j is no name",
    (name) => {
      expect(writeQuestion(name, "A")).toBeNull();
    },
  );
});

describe("replies", () => {
  test("W8 addresses of the type that was asked for come back with their TTL", () => {
    const a = question("A");
    const aaaa = question("AAAA");
    expect(readReply(reply(a, [record(1, 60, V4), record(28, 5, V6)]), a)).toEqual({
      ok: true,
      records: [{ address: "93.184.216.34", ttl: 60 }],
    });
    expect(readReply(reply(aaaa, [record(28, 5, V6)]), aaaa)).toEqual({
      ok: true,
      records: [{ address: "2606:2800:220:1:248:1893:25c8:1946", ttl: 5 }],
    });
  });

  test("W6 an alias' smaller TTL is the address' own, and a TTL with the highest bit is 0", () => {
    const alias = Buffer.from([1, 0x61, 0]);
    const asked = question();
    const chain = [record(5, 7, alias), record(1, 300, V4, alias)];
    expect(readReply(reply(asked, chain), asked)).toMatchObject({ records: [{ ttl: 7 }] });
    expect(readReply(reply(asked, [record(1, 0x8000_0000, V4)]), asked)).toMatchObject({ records: [{ ttl: 0 }] });
  });

  test("records of another class or type are passed over", () => {
    const asked = question();
    const records = [record(1, 9, V4, POINTER, 3), record(16, 9, Buffer.from("text"))];
    expect(readReply(reply(asked, records), asked)).toEqual({ ok: true, records: [] });
  });

  test("a name is the same in any letter case", () => {
    const asked = question();
    const shouted = Buffer.from(reply(asked, [record(1, 9, V4)]));
    shouted.write("WWW", 13, "latin1");
    expect(readReply(shouted, asked).ok).toBe(true);
  });

  test.each([
    [1, "EFORMERR"],
    [2, "ESERVFAIL"],
    [3, "ENOTFOUND"],
    [5, "EREFUSED"],
    [9, "ESERVFAIL"],
  ])("code %i is %s", (rcode, nativeCode) => {
    const asked = question();
    expect(readReply(reply(asked, [], 0x8180 | rcode), asked)).toEqual({ ok: false, nativeCode });
  });

  const asked = question();
  const whole = reply(asked, [record(1, 60, V4)]);
  const other = writeQuestion("www.example.org", "A") ?? Buffer.alloc(0);
  test.each<[string, Buffer]>([
    ["nothing", Buffer.alloc(0)],
    ["a question", asked],
    ["a cut reply that says so", reply(asked, [record(1, 60, V4)], 0x8380)],
    ["the reply to another question", reply(other, [record(1, 60, V4)])],
    ["an address of the wrong length", reply(asked, [record(1, 60, V6)])],
    ["fewer records than it counts", reply(asked, [record(1, 60, V4)], 0x8180, 2)],
    ["a record that runs out", whole.subarray(0, -1)],
    ["a name that runs out", Buffer.concat([reply(asked, [], 0x8180, 1), Buffer.from([63, 1, 2])])],
    ["a label of no kind", reply(asked, [record(1, 60, V4, Buffer.from([0x80, 0]))])],
  ])("W8 %s is no answer", (_what, bytes) => {
    expect(readReply(bytes, asked)).toEqual({ ok: false, nativeCode: "EBADRESP" });
  });

  test("hostile bytes never throw and never loop", () => {
    expect.hasAssertions();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat({ max: 65_535 }), (tail, count) => {
        const bytes = Buffer.concat([reply(asked, [], 0x8180, count), tail]);
        expect(typeof readReply(bytes, asked).ok).toBe("boolean");
      }),
      { numRuns: 3_000 },
    );
  });
});
