import { LOCAL_CODES, localFailure, UPSTREAM_CODES, upstreamFailure } from "@keble-scraper/contract";
import { DependencyUnavailable } from "@keble-scraper/service";
import { TRPCError } from "@trpc/server";
import { describe, expect, it } from "vitest";
import { ApiFailure, failureHeaders, httpStatusOf, toFailure } from "./api-failure.ts";

describe("toFailure", () => {
  it("keeps a failure, also when tRPC wrapped it", () => {
    const failure = localFailure("QUEUE_FULL");
    expect(toFailure(new ApiFailure(failure))).toBe(failure);
    expect(toFailure(new TRPCError({ code: "INTERNAL_SERVER_ERROR", cause: new ApiFailure(failure) }))).toBe(failure);
  });

  it("says of a missing part only that one is missing", () => {
    const cause = new DependencyUnavailable("database", "UNREACHABLE", { cause: new Error("10.0.0.1") });
    for (const error of [cause, new TRPCError({ code: "INTERNAL_SERVER_ERROR", cause })]) {
      expect(toFailure(error)).toEqual(localFailure("DEPENDENCY_UNAVAILABLE"));
    }
  });

  it.each([
    new Error("secret"),
    "secret",
    null,
    undefined,
    new TRPCError({ code: "INTERNAL_SERVER_ERROR", message: "secret" }),
  ])("tells nothing of a fault", (error) => {
    expect(toFailure(error)).toEqual(localFailure("INTERNAL"));
  });
});

describe("failureHeaders", () => {
  it("asks to wait until retryAt, at least a second and at most a day", () => {
    const at = (retryAt: string) => failureHeaders(localFailure("RATE_LIMITED", { retryAt }), 0)["retry-after"];
    expect(at("1970-01-01T00:00:01.001Z")).toBe("2");
    expect(at("1969-01-01T00:00:00.000Z")).toBe("1");
    expect(at("1999-01-01T00:00:00.000Z")).toBe("86400");
  });

  it("F1 every code has a status, and each 429 and 503 a Retry-After", () => {
    const failures = [
      ...LOCAL_CODES.map((code) => localFailure(code)),
      ...UPSTREAM_CODES.map((code) => upstreamFailure(code)),
    ];
    for (const failure of failures) {
      const status = httpStatusOf(failure);
      expect("retry-after" in failureHeaders(failure, 0)).toBe(status === 429 || status === 503);
      expect(new ApiFailure(failure).failure).toBe(failure);
    }
  });
});
