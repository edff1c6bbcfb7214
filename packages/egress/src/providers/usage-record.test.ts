import { describe, expect, it } from "vitest";
import { createUsageRecord } from "./usage-record.ts";

function total(...calls: readonly (boolean | null | "NOT_SENT")[]) {
  const record = createUsageRecord();
  for (const [index, isBilled] of calls.entries()) {
    const call = record.begin();
    call.isBillable = () => isBilled !== "NOT_SENT";
    call.isBilled = isBilled === "NOT_SENT" ? null : isBilled;
    call.browserMs = () => 0.4;
    call.requestId = index === 0 ? "first" : null;
  }
  return record.total();
}

describe("what an attempt used", () => {
  it.each([
    [[], 0, null],
    [["NOT_SENT"], 0, null],
    [[null], 1, null],
    [[true], 1, true],
    [[false], 0, false],
    [[true, true], 2, true],
    [[true, false], 1, true],
    [[false, null], 1, null],
    [[false, false], 0, false],
    [[true, "NOT_SENT"], 1, true],
  ] as const)("W3 calls that were billed %j are %i requests, billed: %s", (calls, requests, isBilled) => {
    expect(total(...calls)).toMatchObject({ requests, isBilled });
  });

  it("adds up browser time, in whole milliseconds, and keeps the last id", () => {
    expect(total(null, null, null)).toMatchObject({ browserMs: 2, providerRequestId: "first", socketBytes: 0 });
  });
});
