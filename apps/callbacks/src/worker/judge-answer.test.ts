import { Failure } from "@keble-scraper/contract";
import { describe, expect, it } from "vitest";
import { judgeAnswer } from "./judge-answer.ts";

describe("judgeAnswer", () => {
  it.each([200, 201, 202, 204, 299])("%i delivers, whatever it says of waiting", (status) => {
    expect(judgeAnswer(status, 5_000)).toEqual({
      outcome: "SUCCEEDED",
      failure: null,
      next: "RETRY",
      retryAfterMs: null,
    });
  });

  it.each([100, 199, 300, 301, 302, 304, 307, 308, 400, 401, 403, 404, 409, 422, 500, 502, 504, 600, 999])(
    "F2 %i is tried again on our own schedule",
    (status) => {
      const judged = judgeAnswer(status, 5_000);
      expect(judged).toMatchObject({ outcome: "FAILED", next: "RETRY", retryAfterMs: null });
      expect(judged.failure).toMatchObject({ httpStatus: status, disposition: "RETRY" });
      expect(Failure.safeParse(judged.failure).success).toBe(true);
    },
  );

  it.each([429, 503])(
    "F2 %i waits as long as it asks for, and by our own schedule when it asks for nothing",
    (status) => {
      expect(judgeAnswer(status, 5_000)).toMatchObject({ retryAfterMs: 5_000, failure: { disposition: "RETRY_AT" } });
      expect(judgeAnswer(status, 0)).toMatchObject({ retryAfterMs: 0, failure: { disposition: "RETRY_AT" } });
      expect(judgeAnswer(status, null)).toMatchObject({ retryAfterMs: null, failure: { disposition: "RETRY" } });
    },
  );

  it("410 is the end of its endpoint", () => {
    expect(judgeAnswer(410, 5_000)).toMatchObject({
      outcome: "FAILED",
      next: "GONE",
      retryAfterMs: null,
      failure: { code: "HTTP_CLIENT_ERROR", disposition: "TERMINAL", httpStatus: 410 },
    });
  });
});
