import { UpstreamFailure } from "@keble-scraper/contract";
import { describe, expect, it } from "vitest";
import { quarantineOf } from "../supplier-failures.ts";
import { BRIGHT_DATA_ERRORS } from "./bright-data-errors.ts";
import { classifyRefusal, isBodyWanted, silenceFailure } from "./classify-refusal.ts";
import { createConnectHeadReader } from "./connect-head.ts";
import type { ProxyProvider } from "./proxy-credentials.ts";
import { parseProxyStatus } from "./proxy-status.ts";

const NOON = Date.parse("2026-11-30T12:00:00.000Z");
const SECRETS = "brd-customer-secret";

type Options = { readonly provider?: ProxyProvider; readonly country?: string; readonly body?: string };

function headOf(status: number, headers: Readonly<Record<string, string>> = {}) {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const read = createConnectHeadReader()(Buffer.from(`HTTP/1.1 ${status} ${SECRETS}\r\n${lines.join("")}\r\n`));
  if (read.kind !== "HEAD") throw new Error(read.kind);
  return read.head;
}

function classify(status: number, headers: Readonly<Record<string, string>> = {}, options: Options = {}) {
  const failure = classifyRefusal({
    head: headOf(status, headers),
    body: Buffer.from(options.body ?? ""),
    provider: options.provider ?? "BRIGHT_DATA",
    wish: { country: options.country ?? null, session: null },
    wallMs: NOON,
  });
  expect(UpstreamFailure.parse(failure)).toEqual(failure);
  expect(JSON.stringify(failure)).not.toContain(SECRETS);
  return failure;
}

/** What the catalogue says, written down a second time: code, status, and what becomes of it. */
const CATALOGUE: readonly (readonly [status: number, expected: string, codes: string])[] = [
  [400, "PROVIDER_AUTH RETRY_NEXT_ROUTE FIX_CREDENTIALS", "client_10060 client_10063"],
  [400, "PROVIDER_CAPACITY RETRY_NEXT_ROUTE CHANGE_REQUEST", "client_10061 client_10062"],
  [401, "PROVIDER_AUTH RETRY_NEXT_ROUTE FIX_CREDENTIALS", "client_10050"],
  [402, "PROVIDER_POLICY RETRY_NEXT_ROUTE CHANGE_REQUEST", "policy_20130 policy_20140"],
  [403, "PROVIDER_AUTH RETRY_NEXT_ROUTE FIX_CREDENTIALS", "kyc_required business_account_required"],
  [403, "PROVIDER_AUTH RETRY_NEXT_ROUTE FIX_CREDENTIALS", "client_10090 client_10130"],
  [403, "PROXY_FAILURE RETRY_NEXT_ROUTE CHANGE_REQUEST", "client_10070 client_10080"],
  [403, "PROVIDER_POLICY RETRY_NEXT_ROUTE CHANGE_REQUEST", "client_10250 client_10260"],
  [
    403,
    "PROVIDER_POLICY RETRY_NEXT_ROUTE CHANGE_REQUEST",
    "policy_20000 policy_20010 policy_20020 policy_20021 policy_20030 policy_20031 policy_20032 policy_20040 policy_20050 " +
      "policy_20051 policy_20052 policy_20080 policy_20090 policy_20091 policy_20110 policy_20230 policy_20240 " +
      "policy_20250 policy_20251 policy_20260 policy_20261",
  ],
  [
    407,
    "PROVIDER_AUTH RETRY_NEXT_ROUTE FIX_CREDENTIALS",
    "client_10000 client_10001 client_10002 client_10010 client_10030 client_10040 policy_20120",
  ],
  [407, "PROVIDER_PAYMENT RETRY_NEXT_ROUTE PAY_SUPPLIER", "client_10020"],
  [408, "PROVIDER_CAPACITY RETRY ROTATE_SESSION", "peer_30040"],
  [429, "PROVIDER_CAPACITY RETRY WAIT", "client_10110 policy_20220 policy_20222"],
  [429, "PROVIDER_CAPACITY RETRY ROTATE_SESSION", "policy_20223"],
  [429, "PROVIDER_CAPACITY RETRY_NEXT_ROUTE CHANGE_REQUEST", "policy_20221"],
  [499, "PROXY_FAILURE RETRY NONE", "client_10140"],
  [502, "PROVIDER_QUOTA RETRY_NEXT_ROUTE QUARANTINE_ROUTE", "client_10100"],
  [502, "PROVIDER_CAPACITY RETRY ROTATE_SESSION", "client_10120"],
  [502, "PROVIDER_CAPACITY RETRY_NEXT_ROUTE CHANGE_REQUEST", "peer_30030"],
  [502, "PROVIDER_POLICY RETRY_NEXT_ROUTE CHANGE_REQUEST", "policy_20070"],
  [502, "DNS_FAILURE TERMINAL CHANGE_REQUEST", "target_40001"],
  [502, "DNS_FAILURE RETRY_NEXT_ROUTE CHANGE_REQUEST", "target_40011"],
  [502, "CONNECT_TIMEOUT RETRY ROTATE_SESSION", "target_40020 target_40021"],
];
const ROWS = CATALOGUE.flatMap(([status, expected, codes]) =>
  codes.split(" ").map((code) => [code, status, expected] as const),
);
/** Every way in which the vendor writes a code down. */
const SPELLINGS: readonly ((code: string) => Record<string, string>)[] = [
  (code) => ({ "X-BRD-Err-Code": code }),
  (code) => ({ "x-brd-error-code": code }),
  (code) => ({ "x-luminati-error-code": code }),
  (code) => ({ "x-brd-error": `${code}: something in words` }),
  (code) => ({
    "Proxy-Status": `brd.superproxy.io; received-status=407; error="http_request_denied"; details="${code}: In, words; \\"quoted\\""`,
  }),
  (code) => ({
    "Proxy-Status": `brd.superpoxy.io; error=destination_ip_unroutable; details=${code.replace("_", "-")}`,
  }),
];

describe("W4 Bright Data's catalogue", () => {
  it("is complete, and every code has its documented status", () => {
    expect(ROWS.map(([code]) => code).toSorted()).toEqual(Object.keys(BRIGHT_DATA_ERRORS).toSorted());
    for (const [code, status] of ROWS) {
      expect([code, BRIGHT_DATA_ERRORS[code as keyof typeof BRIGHT_DATA_ERRORS].httpStatus]).toEqual([code, status]);
    }
  });

  it.each(ROWS)("W4 %s on a %i is %s, however it is written down", (code, status, expected) => {
    for (const spell of SPELLINGS) {
      const failure = classify(status, spell(code));
      expect(`${failure.code} ${failure.disposition} ${failure.action}`).toBe(expected);
      expect(failure.origin).toBe(code.startsWith("target_") ? "TARGET" : "PAID_EGRESS");
      expect(failure).toMatchObject({ httpStatus: status, nativeCode: code });
    }
  });

  it("W4 only refused accounts, unpaid bills and spent quotas quarantine the route", () => {
    for (const [code, status, expected] of ROWS) {
      const quarantine = quarantineOf(classify(status, { "x-brd-err-code": code }), NOON);
      expect([code, quarantine !== null]).toEqual([code, /^PROVIDER_(?:AUTH|PAYMENT|QUOTA) /.test(expected)]);
    }
  });

  it("W4 402 is not a bill, with or without a code", () => {
    expect(classify(402)).toMatchObject({ code: "PROVIDER_POLICY", action: "CHANGE_REQUEST" });
    expect(classify(402, { "x-brd-err-code": "policy_20140" }).code).toBe("PROVIDER_POLICY");
  });

  it("W4 a suspended account is a bill and not a password, though both are 407", () => {
    expect(classify(407, { "x-brd-err-code": "client_10020" }).code).toBe("PROVIDER_PAYMENT");
    expect(classify(407, { "x-brd-err-code": "client_10000" }).code).toBe("PROVIDER_AUTH");
  });

  it("W4 a user name that could not be read with a caller's country in it blames the request, not the account", () => {
    const failure = classify(407, { "x-brd-err-code": "client_10001" }, { country: "zz" });
    expect(failure).toMatchObject({
      code: "PROVIDER_POLICY",
      disposition: "RETRY_NEXT_ROUTE",
      nativeCode: "client_10001",
    });
    expect(quarantineOf(failure, NOON)).toBeNull();
    expect(classify(407, { "x-brd-err-code": "client_10000" }, { country: "zz" }).code).toBe("PROVIDER_AUTH");
  });

  it("W4 no peers available has no number", () => {
    expect(classify(502, { "x-brd-error": "Proxy Error: No peers available" })).toMatchObject({
      code: "PROVIDER_CAPACITY",
      disposition: "RETRY",
      action: "ROTATE_SESSION",
      nativeCode: "no_peers_available",
    });
    expect(classify(502, { "x-brd-error": "Proxy Error: something else" })).toMatchObject({
      code: "PROXY_FAILURE",
      disposition: "RETRY",
      action: "ROTATE_SESSION",
    });
  });

  it("W4 an account that nobody verified says so in its body", () => {
    const headers = { "Content-Type": "application/json; charset=utf-8" };
    expect(isBodyWanted(headOf(403, headers), "BRIGHT_DATA")).toBe(true);
    expect(isBodyWanted(headOf(403, headers), "PLAIN")).toBe(false);
    expect(isBodyWanted(headOf(403, { ...headers, "x-brd-err-code": "policy_20000" }), "BRIGHT_DATA")).toBe(false);
    const body = JSON.stringify({ error: { code: "kyc_required", message: SECRETS, action: SECRETS } });
    expect(classify(403, headers, { body })).toMatchObject({ code: "PROVIDER_AUTH", nativeCode: "kyc_required" });
    for (const hostile of [
      "{",
      "null",
      "[]",
      '{"error":null}',
      '{"error":{"code":7}}',
      '{"error":{"code":"constructor"}}',
    ]) {
      expect(classify(403, headers, { body: hostile })).toMatchObject({ code: "PROVIDER_POLICY" });
    }
  });

  it.each([
    ["policy_29999", 403, "PROVIDER_POLICY"],
    ["peer_39999", 502, "PROVIDER_CAPACITY"],
    ["client_19999", 407, "PROVIDER_AUTH"],
    ["client_19999", 429, "PROVIDER_CAPACITY"],
    ["client_19999", 502, "PROXY_FAILURE"],
    ["client_19999", 403, "PROXY_FAILURE"],
    ["target_49999", 502, "CONNECT_FAILURE"],
  ])("W4 %s on a %i, which the catalogue does not list yet, is %s", (code, status, expected) => {
    expect(classify(status, { "x-brd-err-code": code })).toMatchObject({ code: expected, nativeCode: code });
  });

  it("W4 what does not look like a code is not recorded as one", () => {
    for (const value of ["__proto__", `client_10000 ${SECRETS}`, "x".repeat(5_000), "constructor"]) {
      expect(classify(502, { "x-brd-err-code": value }).nativeCode).toBeUndefined();
    }
  });
});

describe("W4 any other proxy", () => {
  const plain = { provider: "PLAIN" } as const;

  it.each([
    ["P6", 403, "PROXY_FAILURE TERMINAL CHANGE_REQUEST"],
    ["P6", 400, "PROXY_FAILURE TERMINAL CHANGE_REQUEST"],
    ["P6", 405, "PROXY_FAILURE TERMINAL CHANGE_REQUEST"],
    ["P6", 302, "PROXY_FAILURE TERMINAL CHANGE_REQUEST"],
    ["P7", 407, "PROVIDER_AUTH RETRY_NEXT_ROUTE FIX_CREDENTIALS"],
    ["P10", 408, "PROXY_FAILURE RETRY NONE"],
    ["P10", 429, "PROVIDER_CAPACITY RETRY WAIT"],
    ["P10", 500, "PROXY_FAILURE RETRY NONE"],
    ["P10", 502, "PROXY_FAILURE RETRY NONE"],
    ["P10", 503, "PROXY_FAILURE RETRY NONE"],
    ["P10", 504, "PROXY_FAILURE RETRY NONE"],
  ])("%s a %i is %s", (_row, status, expected) => {
    const { code, disposition, action, origin } = classify(status, {}, plain);
    expect([`${code} ${disposition} ${action}`, origin]).toEqual([expected, "PAID_EGRESS"]);
  });

  it("Bright Data's headers mean nothing from another proxy", () => {
    expect(classify(502, { "x-brd-err-code": "client_10100" }, plain).code).toBe("PROXY_FAILURE");
  });

  it.each([
    ["dns_timeout", "DNS_FAILURE", "TARGET"],
    ["dns_error", "DNS_FAILURE", "TARGET"],
    ["destination_unavailable", "CONNECT_FAILURE", "TARGET"],
    ["destination_ip_unroutable", "CONNECT_FAILURE", "TARGET"],
    ["destination_ip_prohibited", "PROVIDER_POLICY", "PAID_EGRESS"],
    ["connection_refused", "CONNECT_FAILURE", "TARGET"],
    ["connection_terminated", "CONNECT_FAILURE", "TARGET"],
    ["connection_timeout", "CONNECT_TIMEOUT", "TARGET"],
    ["connection_limit_reached", "PROVIDER_CAPACITY", "PAID_EGRESS"],
  ])("Proxy-Status %s is a %s of the %s", (error, code, origin) => {
    expect(classify(502, { "Proxy-Status": `a.example; error=${error}` }, plain)).toMatchObject({ code, origin });
  });

  it("a Proxy-Status that says nothing leaves it to the status", () => {
    for (const field of ["a; error=constructor", "a; error=http_request_denied", "", ";;,,", 'a; details="']) {
      expect(classify(407, { "Proxy-Status": field }, plain).code).toBe("PROVIDER_AUTH");
    }
  });
});

describe("F2 Retry-After of a proxy", () => {
  it("makes a throttled or broken proxy wait until then", () => {
    for (const [status, headers] of [
      [429, { "x-brd-err-code": "client_10110" }],
      [503, {}],
    ] as const) {
      expect(classify(status, { ...headers, "Retry-After": "7" })).toMatchObject({
        disposition: "RETRY_AT",
        retryAt: "2026-11-30T12:00:07.000Z",
      });
    }
  });

  it("is read against the answer's own Date", () => {
    const headers = { Date: "Mon, 30 Nov 2026 11:00:00 GMT", "Retry-After": "Mon, 30 Nov 2026 11:00:09 GMT" };
    expect(classify(503, headers).retryAt).toBe("2026-11-30T12:00:09.000Z");
  });

  it("tells when a spent quota is back, and still leaves the route", () => {
    const failure = classify(502, { "x-brd-err-code": "client_10100", "Retry-After": "60" });
    expect(failure.disposition).toBe("RETRY_NEXT_ROUTE");
    expect(quarantineOf(failure, NOON)).toEqual({ reason: "PROVIDER_QUOTA", forMs: 60_000 });
  });

  it("means nothing for a wrong password, nor as a word of the target's", () => {
    expect(classify(407, { "Retry-After": "7" }).retryAt).toBeUndefined();
    expect(classify(502, { "x-brd-err-code": "target_40020", "Retry-After": "7" })).toMatchObject({
      disposition: "RETRY",
      origin: "TARGET",
    });
  });
});

describe("silence", () => {
  it("P8 P9 P12 is the proxy's and worth a retry", () => {
    for (const silence of ["PROXY_UNREACHABLE", "PROXY_TIMEOUT", "PROXY_CLOSED", "PROXY_MALFORMED_ANSWER"] as const) {
      expect(silenceFailure(silence)).toMatchObject({
        code: "PROXY_FAILURE",
        origin: "PAID_EGRESS",
        disposition: "RETRY",
        nativeCode: silence,
      });
    }
    expect(silenceFailure("PROXY_UNREACHABLE", "ECONNREFUSED").nativeCode).toBe("ECONNREFUSED");
  });
});

describe("parseProxyStatus", () => {
  it("takes members and parameters apart, quotes and all", () => {
    expect(parseProxyStatus('far; error=dns_error; next-hop="10.0.0.1", near; details="a, b; \\"c\\""; fwd')).toEqual([
      { error: "dns_error", details: null, nextHop: "10.0.0.1" },
      { error: null, details: 'a, b; "c"', nextHop: null },
    ]);
  });
});
