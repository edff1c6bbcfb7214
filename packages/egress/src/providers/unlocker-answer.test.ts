import { describe, expect, it } from "vitest";
import { readResponseHead, type ResponseHead } from "../transport/response-head.ts";
import {
  emptyRefusal,
  readUnlockerAnswer,
  readUnlockerDebug,
  refusalInBody,
  unmarkedRefusal,
} from "./unlocker-answer.ts";

const WALL_MS = Date.parse("2026-11-30T12:00:00.000Z");

function head(httpStatus: number, headers: Readonly<Record<string, string>>): ResponseHead {
  return readResponseHead(httpStatus, Object.entries(headers).flat(), "GET");
}

describe("an answer of the Unlocker's", () => {
  it.each([
    [{ "x-brd-error-code": "reject_block" }, "reject_block", "BLOCKED"],
    [{ "x-brd-err-code": "client_10020" }, "client_10020", "PROVIDER_PAYMENT"],
    [{ "x-brd-err-code": "client-10020" }, "client-10020", "PROVIDER_PAYMENT"],
    [{ "x-luminati-error-code": "client_10100" }, "client_10100", "PROVIDER_QUOTA"],
    [{ "x-brd-error": "policy_20000: not allowed" }, "policy_20000", "PROVIDER_POLICY"],
    [{ "x-brd-err-msg": "client_10002 zone" }, "client_10002", "PROVIDER_AUTH"],
    [
      {
        "proxy-status":
          'brd.superproxy.io; received-status=407; error="http_request_denied"; details="client-10000: x"',
      },
      "client_10000",
      "PROVIDER_AUTH",
    ],
    [{ "x-brd-error": "no words of ours" }, "HTTP_502", "PROVIDER_FAILURE"],
    [{ "x-brd-error-code": "", "x-brd-error": "policy_20000" }, "policy_20000", "PROVIDER_POLICY"],
    [{ "x-brd-error-code": "a code with words" }, "HTTP_502", "PROVIDER_FAILURE"],
  ])("W4 %o is the provider's refusal, by its code", (headers, nativeCode, code) => {
    const answer = readUnlockerAnswer(head(200, { "x-brd-status-code": "502", ...headers }), WALL_MS);
    expect(answer).toMatchObject({ kind: "REFUSED", failure: { code, nativeCode } });
    // The status inside is the provider's: only its own failures carry it.
    const failure = answer.kind === "REFUSED" ? answer.failure : null;
    expect(failure?.httpStatus).toBe(failure?.origin === "TARGET" ? undefined : 502);
  });

  // Taken for a 200, an error page would be stored as the target's.
  it.each(["0", "99", "100", "199", "1000", "200 OK", "", "x"])(
    "W4 a status inside of %j is none of a target's: the provider's failure, for another route",
    (status) => {
      const answer = readUnlockerAnswer(head(200, { "x-brd-status-code": status }), WALL_MS);
      const failure = { code: "PROVIDER_FAILURE", disposition: "RETRY_NEXT_ROUTE", nativeCode: "UNREADABLE_STATUS" };
      expect(answer).toMatchObject({ kind: "REFUSED", failure });
    },
  );

  it("without an error header is the target's own, whatever its status", () => {
    for (const status of [200, 204, 304, 404, 429, 502, 503]) {
      const answer = readUnlockerAnswer(head(200, { "x-brd-status-code": String(status) }), WALL_MS);
      expect(answer).toMatchObject({ kind: "TARGET", head: { httpStatus: status } });
    }
  });

  it("that carries a mark and no status is a 200 of the target's; one without a mark is nobody's", () => {
    expect(readUnlockerAnswer(head(200, { "x-brd-debug": "billed=true" }), WALL_MS)).toMatchObject({
      kind: "TARGET",
      head: { httpStatus: 200 },
    });
    for (const status of ["", "20", "2000", "99", "abc", "-1"]) {
      expect(readUnlockerAnswer(head(200, { "x-other": status }), WALL_MS)).toEqual({ kind: "UNMARKED" });
    }
  });

  it("shows none of the headers of its own way", () => {
    const own = { connection: "close", "content-length": "5", "content-encoding": "gzip", "proxy-status": "x" };
    const answer = readUnlockerAnswer(
      head(200, { ...own, "x-brd-status-code": "200", "X-BRD-IP": "1.2.3.4", "x-luminati-ip": "1", etag: '"a"' }),
      WALL_MS,
    );
    expect(answer.kind === "TARGET" ? answer.head.headers : null).toEqual({ etag: '"a"' });
  });

  it("F3 keeps a Retry-After only where a retry is meant", () => {
    const busy = { "x-brd-status-code": "429", "x-brd-error-code": "sr_rate_limit", "retry-after": "7" };
    expect(readUnlockerAnswer(head(200, busy), WALL_MS)).toMatchObject({
      failure: { code: "PROVIDER_CAPACITY", disposition: "RETRY_AT", retryAt: "2026-11-30T12:00:07.000Z" },
    });
    const refused = { ...busy, "x-brd-error-code": "policy_20000" };
    const answer = readUnlockerAnswer(head(200, refused), WALL_MS);
    expect(answer.kind === "REFUSED" ? answer.failure : null).not.toHaveProperty("retryAt");
  });
});

describe("refusals that stand in a body, or in none", () => {
  const bad = head(400, {});
  it.each([
    ['zone "some_zone" not found', "PROVIDER_AUTH", "zone_not_found"],
    ['{"error":"Request validation failed","error_code":"validation","details":[]}', "PROVIDER_POLICY", "validation"],
    ['{"error_code":"premium"}', "PROVIDER_POLICY", "premium"],
    ["something else", "PROVIDER_POLICY", "HTTP_400"],
    ['{"error_code":7}', "PROVIDER_POLICY", "HTTP_400"],
    ["", "PROVIDER_POLICY", "HTTP_400"],
  ])("W4 a 400 that says %s", (text, code, nativeCode) => {
    expect(refusalInBody(bad, text, WALL_MS)).toMatchObject({ code, nativeCode, origin: "PAID_EGRESS" });
  });

  it("W4 nothing at all is the policy's; a page that nobody signed is not the API's", () => {
    expect(emptyRefusal(head(200, {}), 200, WALL_MS)).toMatchObject({ code: "PROVIDER_POLICY" });
    expect(unmarkedRefusal(head(200, {}), WALL_MS)).toMatchObject({
      code: "PROVIDER_FAILURE",
      disposition: "RETRY_NEXT_ROUTE",
    });
  });
});

describe("x-brd-debug", () => {
  it.each([
    ["req_id=abc-1; bytes_up=3; billed=true", true, "abc-1"],
    ["billed = FALSE ;req_id = x=y", false, "x=y"],
    ["billed=maybe", null, null],
    ["req_id=with space", null, null],
    [`req_id=${"a".repeat(201)}`, null, null],
    ["", null, null],
  ])("%s", (value, isBilled, requestId) => {
    expect(readUnlockerDebug(head(200, { "x-brd-debug": value }))).toEqual({ isBilled, requestId });
  });

  it("may be absent", () => {
    expect(readUnlockerDebug(head(200, {}))).toEqual({ isBilled: null, requestId: null });
  });
});
