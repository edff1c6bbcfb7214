import { UpstreamFailure } from "@keble-scraper/contract";
import { describe, expect, it } from "vitest";
import { FAILURE_KINDS, type FailureKind, toUpstreamFailure } from "./failure-kind.ts";

describe("toUpstreamFailure", () => {
  it("F1 every kind is a failure of the contract, and a terminal one asks for another request", () => {
    for (const kind of Object.keys(FAILURE_KINDS) as FailureKind[]) {
      const failure = toUpstreamFailure(kind, { httpStatus: 200, nativeCode: "ECODE" });
      expect(UpstreamFailure.safeParse(failure).success, kind).toBe(true);
      expect(failure.action, kind).toBe(failure.disposition === "TERMINAL" ? "CHANGE_REQUEST" : "NONE");
    }
  });

  it("leaves out what is not known", () => {
    const failure = toUpstreamFailure("DNS_TIMEOUT", { httpStatus: null, nativeCode: null });
    expect(failure).not.toHaveProperty("httpStatus");
    expect(failure).not.toHaveProperty("nativeCode");
  });
});
