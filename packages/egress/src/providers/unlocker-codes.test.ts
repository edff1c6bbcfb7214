import { describe, expect, it } from "vitest";
import { BRIGHT_DATA_ERRORS } from "../proxy/bright-data-errors.ts";
import { quarantineOf } from "../supplier-failures.ts";
import { NO_EVIDENCE, toProviderFailure } from "./provider-failure.ts";
import { rowOfUnlockerCode, rowOfUnlockerStatus, UNLOCKER_CODES } from "./unlocker-codes.ts";

/** The provider's catalogue by its own words: status, and whose doing it is. */
const CATALOGUE = {
  premium: ["PROVIDER_POLICY", "PAID_EGRESS", "RETRY_NEXT_ROUTE"],
  feature_not_active: ["PROVIDER_POLICY", "PAID_EGRESS", "RETRY_NEXT_ROUTE"],
  ub_bad_endpoint_robots: ["PROVIDER_POLICY", "PAID_EGRESS", "RETRY_NEXT_ROUTE"],
  validation: ["PROVIDER_POLICY", "PAID_EGRESS", "RETRY_NEXT_ROUTE"],
  sr_rate_limit: ["PROVIDER_CAPACITY", "PAID_EGRESS", "RETRY"],
  rate_limit: ["PROVIDER_CAPACITY", "PAID_EGRESS", "RETRY"],
  reject_block: ["BLOCKED", "TARGET", "RETRY"],
  resolve_failed: ["BLOCKED", "TARGET", "RETRY"],
  resolve_failed_akamai_interstitial: ["BLOCKED", "TARGET", "RETRY"],
  http_status: ["BLOCKED", "TARGET", "RETRY_NEXT_ROUTE"],
  expect_element: ["RENDER_FAILED", "TARGET", "RETRY_NEXT_ROUTE"],
  navigation_timeout: ["RESPONSE_TIMEOUT", "TARGET", "RETRY"],
  domcontentloaded_event_timeout: ["RESPONSE_TIMEOUT", "TARGET", "RETRY"],
  document_load_failed: ["RENDER_FAILED", "TARGET", "RETRY_NEXT_ROUTE"],
  net_err_cert_date_invalid: ["TLS_FAILURE", "TARGET", "TERMINAL"],
  net_err_cert_common_name_invalid: ["TLS_FAILURE", "TARGET", "TERMINAL"],
  net_err_cert_authority_invalid: ["TLS_FAILURE", "TARGET", "TERMINAL"],
  net_err_closed: ["CONNECTION_RESET", "TARGET", "RETRY"],
  proxy_error: ["PROXY_FAILURE", "PAID_EGRESS", "RETRY_NEXT_ROUTE"],
  no_peers: ["PROVIDER_CAPACITY", "PAID_EGRESS", "RETRY_NEXT_ROUTE"],
  proxy_timeout: ["PROXY_FAILURE", "PAID_EGRESS", "RETRY"],
  captcha: ["BLOCKED", "TARGET", "RETRY"],
  dd_hardblock: ["BLOCKED", "TARGET", "RETRY"],
} as const;

describe("what the Unlocker's codes mean", () => {
  it.each(Object.entries(CATALOGUE))("W4 %s", (name, [code, origin, disposition]) => {
    const failure = toProviderFailure(rowOfUnlockerCode(name, 502)!, NO_EVIDENCE);
    expect([failure.code, failure.origin, failure.disposition]).toEqual([code, origin, disposition]);
    // None of them is about the account: no route is shut for one.
    expect(quarantineOf(failure)).toBeNull();
  });

  it("every row of the table is in the test, and the other way round", () => {
    const families = Object.keys(CATALOGUE).filter((name) => !name.startsWith("resolve_failed"));
    expect(families.toSorted()).toEqual(Object.keys(UNLOCKER_CODES).toSorted());
  });

  it.each(Object.entries(BRIGHT_DATA_ERRORS))("W4 %s of the proxies below means what it means there", (name, row) => {
    const { code, origin, disposition, action } = row;
    for (const spelling of [name, name.replace("_", "-"), name.toUpperCase()]) {
      expect(rowOfUnlockerCode(spelling, row.httpStatus)).toEqual({ code, origin, disposition, action });
    }
  });

  it("a code that no table has is no row, above all not one of Object's own names", () => {
    for (const name of ["something_new", "constructor", "__proto__", "toString", ""]) {
      expect(rowOfUnlockerCode(name, 502)).toBeNull();
    }
  });

  it.each([
    [400, "PROVIDER_POLICY", "RETRY_NEXT_ROUTE"],
    [401, "PROVIDER_AUTH", "RETRY_NEXT_ROUTE"],
    [402, "PROVIDER_FAILURE", "RETRY_NEXT_ROUTE"],
    [403, "PROVIDER_POLICY", "RETRY_NEXT_ROUTE"],
    [404, "PROVIDER_FAILURE", "RETRY_NEXT_ROUTE"],
    [407, "PROVIDER_AUTH", "RETRY_NEXT_ROUTE"],
    [408, "PROVIDER_FAILURE", "RETRY"],
    [429, "PROVIDER_CAPACITY", "RETRY"],
    [500, "PROVIDER_FAILURE", "RETRY"],
    [502, "PROVIDER_FAILURE", "RETRY"],
    [503, "PROVIDER_CAPACITY", "RETRY"],
    [301, "PROVIDER_FAILURE", "RETRY_NEXT_ROUTE"],
  ])("W4 a %i without a known code is %s, %s, and never the target's nor a bill", (httpStatus, code, disposition) => {
    expect(rowOfUnlockerStatus(httpStatus)).toMatchObject({ code, disposition, origin: "PAID_EGRESS" });
  });
});
