import { type ProviderRow, row } from "./provider-failure.ts";

const BROWSER = "BROWSER_PROVIDER";

export const CLOUDFLARE_AUTH = row("PROVIDER_AUTH", BROWSER, "RETRY_NEXT_ROUTE", "FIX_CREDENTIALS");
export const CLOUDFLARE_POLICY = row("PROVIDER_POLICY", BROWSER, "RETRY_NEXT_ROUTE", "CHANGE_REQUEST");
export const CLOUDFLARE_BUSY = row("PROVIDER_CAPACITY", BROWSER, "RETRY", "WAIT");
export const CLOUDFLARE_QUOTA = row("PROVIDER_QUOTA", BROWSER, "RETRY_NEXT_ROUTE", "QUARANTINE_ROUTE");
export const CLOUDFLARE_FAILED = row("PROVIDER_FAILURE", BROWSER, "RETRY");
/** Whatever answers there is not the API, or does not speak as documented: asking again changes nothing. */
export const NOT_CLOUDFLARE = row("PROVIDER_FAILURE", BROWSER, "RETRY_NEXT_ROUTE");

/** The provider's browser met it on the page's own way: the target's doing. */
function target(code: ProviderRow["code"], disposition: ProviderRow["disposition"]): ProviderRow {
  return row(code, "TARGET", disposition, disposition === "TERMINAL" ? "CHANGE_REQUEST" : "NONE");
}

/**
 * `errors[].code` of Browser Rendering, from its errors page: 10000 and 2000 are the API's, 5xxx are Chrome's words on
 * the navigation, 6xxx the automation's. 2001 is not in the page but is what a 429 carries.
 */
export const CLOUDFLARE_CODES: Readonly<Record<number, ProviderRow>> = {
  2000: CLOUDFLARE_FAILED,
  2001: CLOUDFLARE_BUSY,
  10000: CLOUDFLARE_AUTH,
  5000: target("TLS_FAILURE", "TERMINAL"),
  5001: target("CONNECT_FAILURE", "RETRY"),
  5002: target("RESPONSE_TIMEOUT", "RETRY"),
  5003: target("TOO_MANY_REDIRECTS", "TERMINAL"),
  5004: target("MALFORMED_RESPONSE", "RETRY_NEXT_ROUTE"),
  5005: target("DNS_FAILURE", "RETRY"),
  5006: target("CONNECTION_RESET", "RETRY"),
  5007: target("UNACCEPTABLE_STATUS", "RETRY_NEXT_ROUTE"),
  5008: target("CONNECT_FAILURE", "RETRY"),
  5009: target("RENDER_FAILED", "RETRY"),
  5010: CLOUDFLARE_POLICY,
  5011: target("CONNECTION_RESET", "RETRY"),
  6000: target("RENDER_FAILED", "RETRY"),
  6001: target("RENDER_FAILED", "RETRY"),
  6002: target("RESPONSE_TIMEOUT", "RETRY"),
  6003: target("RENDER_FAILED", "RETRY_NEXT_ROUTE"),
};

/** What a status without a known code means. */
export function rowOfCloudflareStatus(httpStatus: number): ProviderRow {
  switch (httpStatus) {
    case 401:
    case 403:
      return CLOUDFLARE_AUTH;
    case 400:
    case 413:
      return CLOUDFLARE_POLICY;
    case 408:
      return row("RESPONSE_TIMEOUT", BROWSER, "RETRY");
    case 422:
      return target("RENDER_FAILED", "RETRY");
    case 429:
    case 503:
      return CLOUDFLARE_BUSY;
    default:
      return httpStatus >= 500 ? CLOUDFLARE_FAILED : NOT_CLOUDFLARE;
  }
}

/**
 * Whether a 429 is the day's browser time and not the second's rate: the text of the documents says so, or the wait is
 * longer than any rate needs (the slowest plan is one call in ten seconds).
 */
export function isDailyQuota(message: string | null, retryAfterMs: number | null): boolean {
  if (message !== null && /time limit exceeded|for today|daily/iu.test(message)) return true;
  return retryAfterMs !== null && retryAfterMs > RATE_WAIT_MS_MAX;
}

const RATE_WAIT_MS_MAX = 5 * 60_000;
