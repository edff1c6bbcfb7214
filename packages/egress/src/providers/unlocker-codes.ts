import { meaningOfBrightDataCode } from "../proxy/bright-data-errors.ts";
import { type ProviderRow, row } from "./provider-failure.ts";

const EGRESS = "PAID_EGRESS";

/** Nothing but our account's settings mends it. */
export const WRONG_KEY = row("PROVIDER_AUTH", EGRESS, "RETRY_NEXT_ROUTE", "FIX_CREDENTIALS");
/** The provider will not fetch this for us, whenever we ask. */
export const REFUSED_BY_POLICY = row("PROVIDER_POLICY", EGRESS, "RETRY_NEXT_ROUTE", "CHANGE_REQUEST");
/** It will, later. */
export const BUSY = row("PROVIDER_CAPACITY", EGRESS, "RETRY", "WAIT");
/** It failed, and may not the next time. */
export const FAILED = row("PROVIDER_FAILURE", EGRESS, "RETRY");
/** Whatever answers there is not the API, or does not speak as documented: asking again changes nothing. */
export const NOT_THE_API = row("PROVIDER_FAILURE", EGRESS, "RETRY_NEXT_ROUTE");

const TARGET_TLS = row("TLS_FAILURE", "TARGET", "TERMINAL", "CHANGE_REQUEST");
/** The provider chooses its exits itself, and bills no refused try: the same route may well get through. */
const WALL = row("BLOCKED", "TARGET", "RETRY", "NONE");

/**
 * The Unlocker's own codes, as its error catalogue lists them, with what each one means for a job. Keyed in lower case;
 * `resolve_failed_*` is a family. The last three are not in the catalogue but were seen in its answers.
 */
export const UNLOCKER_CODES: Readonly<Record<string, ProviderRow>> = {
  premium: REFUSED_BY_POLICY,
  feature_not_active: REFUSED_BY_POLICY,
  ub_bad_endpoint_robots: REFUSED_BY_POLICY,
  validation: REFUSED_BY_POLICY,
  sr_rate_limit: BUSY,
  rate_limit: BUSY,
  reject_block: WALL,
  // Some status of the target that the provider takes for a block; once more is what it advises, and we can't count to one.
  http_status: row("BLOCKED", "TARGET", "RETRY_NEXT_ROUTE", "NONE"),
  expect_element: row("RENDER_FAILED", "TARGET", "RETRY_NEXT_ROUTE"),
  navigation_timeout: row("RESPONSE_TIMEOUT", "TARGET", "RETRY"),
  domcontentloaded_event_timeout: row("RESPONSE_TIMEOUT", "TARGET", "RETRY"),
  document_load_failed: row("RENDER_FAILED", "TARGET", "RETRY_NEXT_ROUTE"),
  net_err_cert_date_invalid: TARGET_TLS,
  net_err_cert_common_name_invalid: TARGET_TLS,
  net_err_cert_authority_invalid: TARGET_TLS,
  net_err_closed: row("CONNECTION_RESET", "TARGET", "RETRY"),
  // Mostly a name that does not resolve, but not only: nobody is blamed, and the route is left.
  proxy_error: row("PROXY_FAILURE", EGRESS, "RETRY_NEXT_ROUTE"),
  no_peers: row("PROVIDER_CAPACITY", EGRESS, "RETRY_NEXT_ROUTE", "CHANGE_REQUEST"),
  proxy_timeout: row("PROXY_FAILURE", EGRESS, "RETRY"),
  captcha: WALL,
  dd_hardblock: WALL,
};

/**
 * The row of a code; null for an unknown one. Underscores and hyphens are the same to the provider. Codes of the proxy layer
 * below pass through and mean what they mean there.
 */
export function rowOfUnlockerCode(code: string, httpStatus: number): ProviderRow | null {
  const name = code.toLowerCase().replaceAll("-", "_");
  if (name.startsWith("resolve_failed")) return WALL;
  if (Object.hasOwn(UNLOCKER_CODES, name)) return UNLOCKER_CODES[name] ?? null;
  return meaningOfBrightDataCode(name, httpStatus);
}

/**
 * What a status without a known code means, whether the outer one or the one behind it: only that of the API itself, or
 * one that comes with the provider's error headers.
 */
export function rowOfUnlockerStatus(httpStatus: number): ProviderRow {
  switch (httpStatus) {
    case 401:
    case 407:
      return WRONG_KEY;
    case 400:
    case 403:
      return REFUSED_BY_POLICY;
    case 408:
      return FAILED;
    case 429:
    case 503:
      return BUSY;
    default:
      return httpStatus >= 500 ? FAILED : NOT_THE_API;
  }
}
