import { describe, expect, it } from "vitest";
import { quarantineOf } from "../supplier-failures.ts";
import { readResponseHead, type ResponseHead } from "../transport/response-head.ts";
import { CLOUDFLARE_CODES } from "./cloudflare-codes.ts";
import { readEnvelope, toCloudflareFailure } from "./cloudflare-failure.ts";

const WALL_MS = Date.parse("2026-11-30T12:00:00.000Z");

function head(httpStatus: number, headers: Readonly<Record<string, string>> = {}): ResponseHead {
  return readResponseHead(httpStatus, Object.entries(headers).flat(), "GET");
}

function refusal(code: number, message = "text") {
  return readEnvelope(JSON.stringify({ success: false, errors: [{ code, message }] }));
}

const CATALOGUE = {
  2000: ["PROVIDER_FAILURE", "BROWSER_PROVIDER", "RETRY"],
  2001: ["PROVIDER_CAPACITY", "BROWSER_PROVIDER", "RETRY"],
  10000: ["PROVIDER_AUTH", "BROWSER_PROVIDER", "RETRY_NEXT_ROUTE"],
  5000: ["TLS_FAILURE", "TARGET", "TERMINAL"],
  5001: ["CONNECT_FAILURE", "TARGET", "RETRY"],
  5002: ["RESPONSE_TIMEOUT", "TARGET", "RETRY"],
  5003: ["TOO_MANY_REDIRECTS", "TARGET", "TERMINAL"],
  5004: ["MALFORMED_RESPONSE", "TARGET", "RETRY_NEXT_ROUTE"],
  5005: ["DNS_FAILURE", "TARGET", "RETRY"],
  5006: ["CONNECTION_RESET", "TARGET", "RETRY"],
  5007: ["UNACCEPTABLE_STATUS", "TARGET", "RETRY_NEXT_ROUTE"],
  5008: ["CONNECT_FAILURE", "TARGET", "RETRY"],
  5009: ["RENDER_FAILED", "TARGET", "RETRY"],
  5010: ["PROVIDER_POLICY", "BROWSER_PROVIDER", "RETRY_NEXT_ROUTE"],
  5011: ["CONNECTION_RESET", "TARGET", "RETRY"],
  6000: ["RENDER_FAILED", "TARGET", "RETRY"],
  6001: ["RENDER_FAILED", "TARGET", "RETRY"],
  6002: ["RESPONSE_TIMEOUT", "TARGET", "RETRY"],
  6003: ["RENDER_FAILED", "TARGET", "RETRY_NEXT_ROUTE"],
} as const;

describe("what Browser Rendering's answers mean", () => {
  it.each(Object.entries(CATALOGUE))("W4 %s under whatever status", (number, [code, origin, disposition]) => {
    for (const status of [200, 422, 500]) {
      const failure = toCloudflareFailure(head(status), refusal(Number(number)), WALL_MS);
      expect([failure.code, failure.origin, failure.disposition]).toEqual([code, origin, disposition]);
      expect(failure.nativeCode).toBe(number);
    }
  });

  it("every row of the table is in the test", () => {
    expect(Object.keys(CATALOGUE).toSorted()).toEqual(Object.keys(CLOUDFLARE_CODES).toSorted());
  });

  it.each([
    [400, "PROVIDER_POLICY", "BROWSER_PROVIDER", "RETRY_NEXT_ROUTE"],
    [401, "PROVIDER_AUTH", "BROWSER_PROVIDER", "RETRY_NEXT_ROUTE"],
    [402, "PROVIDER_FAILURE", "BROWSER_PROVIDER", "RETRY_NEXT_ROUTE"],
    [403, "PROVIDER_AUTH", "BROWSER_PROVIDER", "RETRY_NEXT_ROUTE"],
    [404, "PROVIDER_FAILURE", "BROWSER_PROVIDER", "RETRY_NEXT_ROUTE"],
    [408, "RESPONSE_TIMEOUT", "BROWSER_PROVIDER", "RETRY"],
    [413, "PROVIDER_POLICY", "BROWSER_PROVIDER", "RETRY_NEXT_ROUTE"],
    [422, "RENDER_FAILED", "TARGET", "RETRY"],
    [429, "PROVIDER_CAPACITY", "BROWSER_PROVIDER", "RETRY"],
    [500, "PROVIDER_FAILURE", "BROWSER_PROVIDER", "RETRY"],
    [502, "PROVIDER_FAILURE", "BROWSER_PROVIDER", "RETRY"],
    [503, "PROVIDER_CAPACITY", "BROWSER_PROVIDER", "RETRY"],
  ])("W4 a %i without a known code, or without an envelope, is %s of %s, %s", (status, code, origin, disposition) => {
    for (const envelope of [null, readEnvelope('{"success":false,"errors":[]}'), refusal(424_242)]) {
      const failure = toCloudflareFailure(head(status), envelope, WALL_MS);
      expect([failure.code, failure.origin, failure.disposition]).toEqual([code, origin, disposition]);
      expect(failure.nativeCode).toBe(envelope?.errors.length === 1 ? "424242" : `HTTP_${status}`);
    }
  });

  it.each([
    ["Rate limit exceeded", { "retry-after": "1" }, "PROVIDER_CAPACITY", "RETRY_AT"],
    ["Rate limit exceeded", { "retry-after": "10" }, "PROVIDER_CAPACITY", "RETRY_AT"],
    ["Rate limit exceeded", {}, "PROVIDER_CAPACITY", "RETRY"],
    ["Rate limit exceeded", { "retry-after": "soon" }, "PROVIDER_CAPACITY", "RETRY"],
    ["Rate limit exceeded", { "retry-after": "17280" }, "PROVIDER_QUOTA", "RETRY_NEXT_ROUTE"],
    ["Browser time limit exceeded for today", {}, "PROVIDER_QUOTA", "RETRY_NEXT_ROUTE"],
    ["Browser time limit exceeded for today", { "retry-after": "17280" }, "PROVIDER_QUOTA", "RETRY_NEXT_ROUTE"],
  ])("W4 a 429 that says %s, with %o, is %s, %s", (message, headers, code, disposition) => {
    const failure = toCloudflareFailure(head(429, headers), refusal(2001, message), WALL_MS);
    expect(failure).toMatchObject({ code, disposition, nativeCode: "2001" });
    const wait = "retry-after" in headers && headers["retry-after"] === "17280" ? 17_280_000 : null;
    const advice = quarantineOf(failure, WALL_MS);
    expect(advice === null ? null : advice.forMs).toBe(code === "PROVIDER_QUOTA" ? wait : null);
    expect(advice === null).toBe(code !== "PROVIDER_QUOTA");
  });

  it("W4 no browser free is capacity, however long the wait", () => {
    const failure = toCloudflareFailure(head(503, { "retry-after": "86400" }), refusal(1), WALL_MS);
    expect(failure).toMatchObject({ code: "PROVIDER_CAPACITY", disposition: "RETRY_AT" });
  });

  it("takes the request's id from cf-ray, and no text of the provider's", () => {
    const failure = toCloudflareFailure(head(500, { "cf-ray": "8f00aa-AMS" }), refusal(2000, "secret words"), WALL_MS);
    expect(failure.nativeRequestId).toBe("8f00aa-AMS");
    expect(JSON.stringify(failure)).not.toContain("secret");
  });
});

describe("an envelope", () => {
  it.each(["", "[]", "null", "7", "<p>", '{"result":"a"}', '{"success":"true"}'])("%s is none", (json) => {
    expect(readEnvelope(json)).toBeNull();
  });

  it("reads what has its type and leaves out the rest", () => {
    const json = JSON.stringify({
      success: false,
      errors: [7, null, { code: "x" }, { code: 5005 }, { code: 2001, message: 9 }],
      meta: { status: 404.5, url: 7 },
    });
    expect(readEnvelope(json)).toEqual({
      isSuccess: false,
      errors: [
        { code: 5005, message: "" },
        { code: 2001, message: "" },
      ],
      targetStatus: null,
      finalUrl: null,
    });
    expect(readEnvelope('{"success":true,"meta":{"status":404,"url":"https://example.com/"}}')).toMatchObject({
      targetStatus: 404,
      finalUrl: "https://example.com/",
    });
  });
});
