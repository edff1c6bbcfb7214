import {
  type Action,
  type Disposition,
  type UpstreamCode,
  type UpstreamFailure,
  upstreamFailure,
} from "@keble-scraper/contract";

type KindRow = { readonly code: UpstreamCode; readonly disposition: Disposition; readonly action: Action };

function retry(code: UpstreamCode): KindRow {
  return { code, disposition: "RETRY", action: "NONE" };
}

function terminal(code: UpstreamCode): KindRow {
  return { code, disposition: "TERMINAL", action: "CHANGE_REQUEST" };
}

/** Everything that can go wrong between us and an origin, finer than the public codes, and what each one means for a retry. */
export const FAILURE_KINDS = {
  REDIRECT_REJECTED: terminal("REDIRECT_FORBIDDEN"),
  REDIRECT_INVALID: terminal("REDIRECT_FORBIDDEN"),
  REDIRECT_LOOP: terminal("TOO_MANY_REDIRECTS"),
  REDIRECT_LIMIT: terminal("TOO_MANY_REDIRECTS"),
  /** NXDOMAIN: the name does not exist. */
  DNS_NOT_FOUND: terminal("DNS_FAILURE"),
  DNS_NO_ADDRESS: retry("DNS_FAILURE"),
  DNS_TIMEOUT: retry("DNS_FAILURE"),
  DNS_SERVFAIL: retry("DNS_FAILURE"),
  CONNECT_REFUSED: retry("CONNECT_FAILURE"),
  CONNECT_UNREACHABLE: retry("CONNECT_FAILURE"),
  CONNECT_RESET: retry("CONNECT_FAILURE"),
  CONNECT_TIMEOUT: retry("CONNECT_TIMEOUT"),
  /** Expired, for another name, self-signed, or of an unknown authority. */
  TLS_CERTIFICATE: terminal("TLS_FAILURE"),
  /** The peer answered the handshake with an alert, or with something that is not TLS. */
  TLS_HANDSHAKE: terminal("TLS_FAILURE"),
  /** The peer just closed during the handshake. */
  TLS_CLOSED: retry("TLS_FAILURE"),
  HEADERS_TIMEOUT: retry("RESPONSE_TIMEOUT"),
  BODY_IDLE_TIMEOUT: retry("BODY_TIMEOUT"),
  /** The attempt's hard limit, before the final head. */
  ATTEMPT_TIMEOUT_IN_HEAD: retry("RESPONSE_TIMEOUT"),
  /** The attempt's hard limit, inside the body. */
  ATTEMPT_TIMEOUT_IN_BODY: retry("BODY_TIMEOUT"),
  HEADERS_TOO_LARGE: terminal("HEADERS_TOO_LARGE"),
  BODY_TOO_LARGE: terminal("BODY_TOO_LARGE"),
  DECODED_TOO_LARGE: terminal("BODY_TOO_LARGE"),
  HTTP_PROTOCOL: terminal("MALFORMED_RESPONSE"),
  /** The connection ended before the final head. */
  EMPTY_RESPONSE: retry("CONNECTION_RESET"),
  BODY_TRUNCATED: retry("TRUNCATED_BODY"),
  DECODE_TRUNCATED: retry("TRUNCATED_BODY"),
  DECODE_ERROR: terminal("DECODING_FAILED"),
  ENCODING_UNSUPPORTED: terminal("DECODING_FAILED"),
  UNWANTED_CONTENT_TYPE: terminal("UNWANTED_CONTENT_TYPE"),
} as const satisfies Readonly<Record<string, KindRow>>;

export type FailureKind = keyof typeof FAILURE_KINDS;

/** What is recorded beside the kind. `nativeCode` is undici's, Node's or OpenSSL's own code, when there was one. */
export type FailureEvidence = { readonly httpStatus?: number | null; readonly nativeCode?: string | null };

/** The public failure of a kind. */
export function toUpstreamFailure(kind: FailureKind, evidence: FailureEvidence = {}): UpstreamFailure {
  const { code, disposition, action } = FAILURE_KINDS[kind];
  const { httpStatus, nativeCode } = evidence;
  return upstreamFailure(code, {
    disposition,
    action,
    ...(httpStatus == null ? {} : { httpStatus }),
    ...(nativeCode == null ? {} : { nativeCode }),
  });
}
