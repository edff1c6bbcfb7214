import { describe, expect, test } from "vitest";
import { type Answer, mergeAnswers } from "./merge-answers.ts";

const V4: Answer = { records: [{ address: "93.184.216.34", ttl: 300 }] };
const V6: Answer = { records: [{ address: "2606:2800:220:1::1", ttl: 20 }] };
const failed = (nativeCode: string): Answer => ({ nativeCode });

describe("two questions, one outcome", () => {
  test("the smallest TTL of all records is the answer's", () => {
    expect(mergeAnswers([V4, V6])).toEqual({
      ok: true,
      addresses: ["93.184.216.34", "2606:2800:220:1::1"],
      ttlMs: 20_000,
    });
  });

  test.each(["ENODATA", "ENOTFOUND"])("the other question's %s is an answer: the rest may be remembered", (code) => {
    expect(mergeAnswers([V4, failed(code)])).toMatchObject({ ok: true, ttlMs: 300_000 });
  });

  // Remembered, half an answer would hide the private address that the other half may hold.
  test.each(["ESERVFAIL", "ETIMEOUT", "EREFUSED", "ECANCELLED"])(
    "W6 beside a question that failed with %s an answer is not remembered",
    (code) => {
      expect(mergeAnswers([V4, failed(code)])).toEqual({ ok: true, addresses: ["93.184.216.34"] });
      expect(mergeAnswers([failed(code), V6])).toEqual({ ok: true, addresses: ["2606:2800:220:1::1"] });
    },
  );

  test("a TTL of 0 is none", () => {
    expect(mergeAnswers([{ records: [{ address: "93.184.216.34", ttl: 0 }] }, V6])).not.toHaveProperty("ttlMs");
  });
});
