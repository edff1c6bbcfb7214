import { describe, expect, it } from "vitest";
import { judgeStatus } from "./judge-status.ts";
import { readResponseHead } from "./response-head.ts";

const WALL_MS = Date.UTC(2026, 10, 30, 12);

function head(httpStatus: number, headers: Record<string, string> = {}) {
  return readResponseHead(httpStatus, Object.entries(headers).flat(), "GET");
}
function judge(httpStatus: number, accept: "SUCCESS_ONLY" | "ANY_RESPONSE", isConditional = false) {
  return judgeStatus(head(httpStatus), { accept, isConditional, wallMs: WALL_MS })?.code ?? null;
}

describe("judgeStatus", () => {
  it.each([
    [200, null],
    [204, null],
    [299, null],
    [300, "UNACCEPTABLE_STATUS"],
    [302, "UNACCEPTABLE_STATUS"],
    [304, "UNACCEPTABLE_STATUS"],
    [400, "HTTP_CLIENT_ERROR"],
    [402, "HTTP_CLIENT_ERROR"],
    [403, "HTTP_CLIENT_ERROR"],
    [404, "NOT_FOUND"],
    [410, "NOT_FOUND"],
    [429, "RATE_LIMITED"],
    [499, "HTTP_CLIENT_ERROR"],
    [500, "HTTP_SERVER_ERROR"],
    [503, "HTTP_SERVER_ERROR"],
    [599, "HTTP_SERVER_ERROR"],
    [600, "UNACCEPTABLE_STATUS"],
    [999, "UNACCEPTABLE_STATUS"],
  ])("SUCCESS_ONLY: %d is %s", (httpStatus, code) => {
    expect(judge(httpStatus, "SUCCESS_ONLY")).toBe(code);
  });

  it("SUCCESS_ONLY: a 304 to a conditional request is an answer", () => {
    expect(judge(304, "SUCCESS_ONLY", true)).toBeNull();
    expect(judge(302, "SUCCESS_ONLY", true)).toBe("UNACCEPTABLE_STATUS");
  });

  it("ANY_RESPONSE: every status is an answer but 429 and 5xx", () => {
    for (let httpStatus = 200; httpStatus <= 999; httpStatus += 1) {
      const expected =
        httpStatus === 429 ? "RATE_LIMITED" : httpStatus >= 500 && httpStatus < 600 ? "HTTP_SERVER_ERROR" : null;
      expect(judge(httpStatus, "ANY_RESPONSE"), String(httpStatus)).toBe(expected);
    }
  });

  it.each([
    ["seconds", { "retry-after": "7" }, "2026-11-30T12:00:07.000Z"],
    ["a date, against our clock", { "retry-after": "Mon, 30 Nov 2026 12:01:00 GMT" }, "2026-11-30T12:01:00.000Z"],
    [
      "a date, against the response's own clock",
      { "retry-after": "Mon, 30 Nov 2026 15:01:00 GMT", date: "Mon, 30 Nov 2026 15:00:00 GMT" },
      "2026-11-30T12:01:00.000Z",
    ],
    ["for ever, bounded by a year", { "retry-after": "inf" }, "2027-12-01T12:00:00.000Z"],
  ] as const)("F2 a 503 that asks to wait %s is RETRY_AT", (_what, headers, retryAt) => {
    const rules = { accept: "SUCCESS_ONLY", isConditional: false, wallMs: WALL_MS } as const;
    for (const httpStatus of [429, 503]) {
      expect(judgeStatus(head(httpStatus, headers), rules)).toMatchObject({
        disposition: "RETRY_AT",
        retryAt,
        httpStatus,
      });
    }
  });

  it("F2 a 429 or 5xx that says nothing readable is RETRY, without a time", () => {
    const rules = { accept: "SUCCESS_ONLY", isConditional: false, wallMs: WALL_MS } as const;
    for (const headers of [{}, { "retry-after": "soon" }]) {
      for (const httpStatus of [429, 503]) {
        const failure = judgeStatus(head(httpStatus, headers), rules);
        expect(failure).toMatchObject({ disposition: "RETRY" });
        expect(failure).not.toHaveProperty("retryAt");
      }
    }
  });
});
