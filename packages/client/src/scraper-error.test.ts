import { localFailure, toErrorEnvelope } from "@keble-scraper/contract";
import { TRPCClientError } from "@trpc/client";
import { describe, expect, it } from "vitest";
import { ScraperError, toScraperError } from "./scraper-error.ts";

const answered = (data: unknown) =>
  TRPCClientError.from({ error: { code: -32_603, message: "x", data: data as object } } as never);

describe("toScraperError", () => {
  it("carries the failure that the service answered", () => {
    const envelope = toErrorEnvelope(localFailure("QUEUE_FULL"), { requestId: "r-1" });
    const error = toScraperError(answered({ ...envelope, code: "TOO_MANY_REQUESTS", httpStatus: 429 }));
    expect(error).toBeInstanceOf(ScraperError);
    expect(error.failure).toEqual(envelope.error);
    expect(error.message).toBe("Too many of this caller's jobs are waiting.");
    expect(toScraperError(error)).toBe(error);
  });

  it("carries a code that this version does not know, since its disposition says what to do", () => {
    const { error: body } = toErrorEnvelope(localFailure("QUEUE_FULL"), { requestId: "r-1" });
    const newer = { ...body, code: "TIRED", mood: 1 };
    expect(toScraperError(answered({ error: newer })).failure).toEqual(newer);
  });

  it.each([
    new Error("connect ECONNREFUSED"),
    answered({ code: "X" }),
    answered({ error: { code: "NEW" } }),
    answered(null),
    "x",
  ])("has no failure when no answer could be read, and keeps the cause", (cause) => {
    expect(toScraperError(cause)).toMatchObject({ failure: null, cause });
  });
});
