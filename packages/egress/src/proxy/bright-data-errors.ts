import type { Action, Disposition, UpstreamCode } from "@keble-scraper/contract";

/** What a refusal of a supplier means. TARGET: the supplier says that the target is to blame. */
export type RefusalMeaning = {
  readonly code: UpstreamCode;
  readonly origin: "PAID_EGRESS" | "TARGET";
  readonly disposition: Disposition;
  readonly action: Action;
};

/** A documented code of Bright Data's, with the status it comes with. */
export type BrightDataError = RefusalMeaning & { readonly httpStatus: number };

/** Our account or its configuration is refused, whatever is asked: an operator has to mend it. */
export const ACCOUNT_REFUSED: RefusalMeaning = {
  code: "PROVIDER_AUTH",
  origin: "PAID_EGRESS",
  disposition: "RETRY_NEXT_ROUTE",
  action: "FIX_CREDENTIALS",
};

/** This request is not served here, whenever it is asked. */
export const NOT_ALLOWED: RefusalMeaning = {
  code: "PROVIDER_POLICY",
  origin: "PAID_EGRESS",
  disposition: "RETRY_NEXT_ROUTE",
  action: "CHANGE_REQUEST",
};

/** No exit at the moment: another one may do. */
export const NO_PEER: RefusalMeaning = {
  code: "PROVIDER_CAPACITY",
  origin: "PAID_EGRESS",
  disposition: "RETRY",
  action: "ROTATE_SESSION",
};

/** The supplier throttles us. */
export const SLOW_DOWN: RefusalMeaning = {
  code: "PROVIDER_CAPACITY",
  origin: "PAID_EGRESS",
  disposition: "RETRY",
  action: "WAIT",
};

/** The place that was asked for has no exits on this route. */
const NO_EXIT_THERE: RefusalMeaning = {
  code: "PROVIDER_CAPACITY",
  origin: "PAID_EGRESS",
  disposition: "RETRY_NEXT_ROUTE",
  action: "CHANGE_REQUEST",
};

const UNPAID: RefusalMeaning = {
  code: "PROVIDER_PAYMENT",
  origin: "PAID_EGRESS",
  disposition: "RETRY_NEXT_ROUTE",
  action: "PAY_SUPPLIER",
};

const SPENT: RefusalMeaning = {
  code: "PROVIDER_QUOTA",
  origin: "PAID_EGRESS",
  disposition: "RETRY_NEXT_ROUTE",
  action: "QUARANTINE_ROUTE",
};

/** The supplier could not read what we sent it: nothing of the target's, and no other attempt reads otherwise. */
const MISREAD: RefusalMeaning = {
  code: "PROXY_FAILURE",
  origin: "PAID_EGRESS",
  disposition: "RETRY_NEXT_ROUTE",
  action: "CHANGE_REQUEST",
};

const CUT_SHORT: RefusalMeaning = {
  code: "PROXY_FAILURE",
  origin: "PAID_EGRESS",
  disposition: "RETRY",
  action: "NONE",
};

const NO_SUCH_NAME: RefusalMeaning = {
  code: "DNS_FAILURE",
  origin: "TARGET",
  disposition: "TERMINAL",
  action: "CHANGE_REQUEST",
};

const NO_IPV6: RefusalMeaning = {
  code: "DNS_FAILURE",
  origin: "TARGET",
  disposition: "RETRY_NEXT_ROUTE",
  action: "CHANGE_REQUEST",
};

const TARGET_SILENT: RefusalMeaning = {
  code: "CONNECT_TIMEOUT",
  origin: "TARGET",
  disposition: "RETRY",
  action: "ROTATE_SESSION",
};

function on(httpStatus: number, meaning: RefusalMeaning): BrightDataError {
  return { httpStatus, ...meaning };
}

/**
 * Every code of Bright Data's proxy error catalogue (docs.brightdata.com/proxy-networks/errorCatalog, read 2026-11-30).
 * Codes, statuses and their sense are the vendor's; what they mean for a retry is ours. 402 is a rule about targets, not a
 * bill: a suspended account is a 407, and a zone at its limit a 502.
 */
export const BRIGHT_DATA_ERRORS = {
  /** The fixed exit address is no longer the zone's, as after a long suspension. */
  client_10060: on(400, ACCOUNT_REFUSED),
  client_10061: on(400, NO_EXIT_THERE),
  client_10062: on(400, NO_EXIT_THERE),
  client_10063: on(400, ACCOUNT_REFUSED),
  /** Our own address is on the account's deny list. */
  client_10050: on(401, ACCOUNT_REFUSED),
  policy_20130: on(402, NOT_ALLOWED),
  /** robots.txt forbids it, for accounts whose owner is not verified. */
  policy_20140: on(402, NOT_ALLOWED),
  /** Residential zones need a verified owner: nothing works before. */
  kyc_required: on(403, ACCOUNT_REFUSED),
  business_account_required: on(403, ACCOUNT_REFUSED),
  client_10070: on(403, MISREAD),
  client_10080: on(403, MISREAD),
  /** A zone of another product. */
  client_10090: on(403, ACCOUNT_REFUSED),
  client_10130: on(403, ACCOUNT_REFUSED),
  /** The zone's own lists of targets. */
  client_10250: on(403, NOT_ALLOWED),
  client_10260: on(403, NOT_ALLOWED),
  policy_20000: on(403, NOT_ALLOWED),
  policy_20010: on(403, NOT_ALLOWED),
  policy_20020: on(403, NOT_ALLOWED),
  policy_20021: on(403, NOT_ALLOWED),
  policy_20030: on(403, NOT_ALLOWED),
  policy_20031: on(403, NOT_ALLOWED),
  policy_20032: on(403, NOT_ALLOWED),
  policy_20040: on(403, NOT_ALLOWED),
  policy_20050: on(403, NOT_ALLOWED),
  policy_20051: on(403, NOT_ALLOWED),
  policy_20052: on(403, NOT_ALLOWED),
  policy_20080: on(403, NOT_ALLOWED),
  policy_20090: on(403, NOT_ALLOWED),
  policy_20091: on(403, NOT_ALLOWED),
  policy_20110: on(403, NOT_ALLOWED),
  policy_20230: on(403, NOT_ALLOWED),
  policy_20240: on(403, NOT_ALLOWED),
  policy_20250: on(403, NOT_ALLOWED),
  policy_20251: on(403, NOT_ALLOWED),
  policy_20260: on(403, NOT_ALLOWED),
  policy_20261: on(403, NOT_ALLOWED),
  client_10000: on(407, ACCOUNT_REFUSED),
  /** Wrong credentials, or a flag in the user name that could not be read. */
  client_10001: on(407, ACCOUNT_REFUSED),
  client_10002: on(407, ACCOUNT_REFUSED),
  client_10010: on(407, ACCOUNT_REFUSED),
  /** The account is suspended, which happens by itself when its balance is negative. */
  client_10020: on(407, UNPAID),
  client_10030: on(407, ACCOUNT_REFUSED),
  client_10040: on(407, ACCOUNT_REFUSED),
  /** The fixed exit address is misspelt in the configured user name. */
  policy_20120: on(407, ACCOUNT_REFUSED),
  /** The exit could not reach the target in time; another one may. */
  peer_30040: on(408, NO_PEER),
  client_10110: on(429, SLOW_DOWN),
  policy_20220: on(429, SLOW_DOWN),
  /** Sites that tell an address's place are throttled for everybody. */
  policy_20221: on(429, NO_EXIT_THERE),
  policy_20222: on(429, SLOW_DOWN),
  policy_20223: on(429, NO_PEER),
  /** The supplier thinks that we hung up. */
  client_10140: on(499, CUT_SHORT),
  /** The zone has reached the limit that its owner set, in bytes or money. */
  client_10100: on(502, SPENT),
  client_10120: on(502, NO_PEER),
  peer_30030: on(502, NO_EXIT_THERE),
  policy_20070: on(502, NOT_ALLOWED),
  target_40001: on(502, NO_SUCH_NAME),
  target_40011: on(502, NO_IPV6),
  target_40020: on(502, TARGET_SILENT),
  target_40021: on(502, TARGET_SILENT),
} as const satisfies Readonly<Record<string, BrightDataError>>;

export type BrightDataCode = keyof typeof BRIGHT_DATA_ERRORS;

/**
 * What a code that the catalogue does not list yet means, by its family; null for no code of the vendor's. The status of
 * the answer tells a refused account from a refused request.
 */
export function meaningOfBrightDataCode(code: string, httpStatus: number): RefusalMeaning | null {
  if (isBrightDataCode(code)) {
    const { httpStatus: _, ...meaning } = BRIGHT_DATA_ERRORS[code];
    return meaning;
  }
  const family = /^(client|policy|peer|target)_\d{1,8}$/.exec(code)?.[1];
  if (family === undefined) return null;
  if (httpStatus === 407 || httpStatus === 401) return ACCOUNT_REFUSED;
  if (httpStatus === 429) return SLOW_DOWN;
  if (family === "peer") return NO_PEER;
  if (family === "target") return { ...TARGET_SILENT, code: "CONNECT_FAILURE" };
  if (family === "policy") return NOT_ALLOWED;
  return httpStatus >= 500 ? CUT_SHORT : MISREAD;
}

function isBrightDataCode(code: string): code is BrightDataCode {
  return Object.hasOwn(BRIGHT_DATA_ERRORS, code);
}
