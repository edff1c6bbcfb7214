import { errors } from "undici";
import { describe, expect, it } from "vitest";
import { classifyError, codeOf, type ErrorMeaning, type ErrorStage } from "./classify-error.ts";

const STAGES = ["TCP", "TLS", "HEAD", "BODY", "NO_BODY"] as const satisfies readonly ErrorStage[];

function coded(code: string): Error {
  return Object.assign(new Error("x"), { code });
}

/** As undici makes them: `data` is what was left of the input. */
function parserError(fields: { readonly data: string; readonly code?: string }): Error {
  return Object.assign(new errors.HTTPParserError("bad"), fields);
}

/** What each error means in each stage, in the order of `STAGES`. */
const TABLE: readonly (readonly [
  string,
  Error,
  readonly [ErrorMeaning, ErrorMeaning, ErrorMeaning, ErrorMeaning, ErrorMeaning],
])[] = [
  ["ECONNREFUSED", coded("ECONNREFUSED"), ["CONNECT_REFUSED", "TLS_HANDSHAKE", "FAULT", "FAULT", "HARMLESS"]],
  [
    "EHOSTUNREACH",
    coded("EHOSTUNREACH"),
    ["CONNECT_UNREACHABLE", "TLS_HANDSHAKE", "EMPTY_RESPONSE", "BODY_TRUNCATED", "HARMLESS"],
  ],
  [
    "ENETUNREACH",
    coded("ENETUNREACH"),
    ["CONNECT_UNREACHABLE", "TLS_HANDSHAKE", "EMPTY_RESPONSE", "BODY_TRUNCATED", "HARMLESS"],
  ],
  [
    "EADDRNOTAVAIL",
    coded("EADDRNOTAVAIL"),
    ["CONNECT_UNREACHABLE", "TLS_HANDSHAKE", "EMPTY_RESPONSE", "BODY_TRUNCATED", "HARMLESS"],
  ],
  ["ETIMEDOUT", coded("ETIMEDOUT"), ["CONNECT_TIMEOUT", "TLS_CLOSED", "EMPTY_RESPONSE", "BODY_TRUNCATED", "HARMLESS"]],
  ["ECONNRESET", coded("ECONNRESET"), ["CONNECT_RESET", "TLS_CLOSED", "EMPTY_RESPONSE", "BODY_TRUNCATED", "HARMLESS"]],
  ["PEER_RESET", coded("PEER_RESET"), ["CONNECT_RESET", "TLS_CLOSED", "EMPTY_RESPONSE", "BODY_TRUNCATED", "HARMLESS"]],
  ["EPIPE", coded("EPIPE"), ["CONNECT_RESET", "TLS_CLOSED", "EMPTY_RESPONSE", "BODY_TRUNCATED", "HARMLESS"]],
  [
    "an expired certificate",
    coded("CERT_HAS_EXPIRED"),
    ["CONNECT_UNREACHABLE", "TLS_CERTIFICATE", "TLS_CERTIFICATE", "TLS_CERTIFICATE", "TLS_CERTIFICATE"],
  ],
  [
    "another name's certificate",
    coded("ERR_TLS_CERT_ALTNAME_INVALID"),
    ["FAULT", "TLS_CERTIFICATE", "TLS_CERTIFICATE", "TLS_CERTIFICATE", "TLS_CERTIFICATE"],
  ],
  [
    "a self-signed certificate",
    coded("DEPTH_ZERO_SELF_SIGNED_CERT"),
    ["CONNECT_UNREACHABLE", "TLS_CERTIFICATE", "TLS_CERTIFICATE", "TLS_CERTIFICATE", "TLS_CERTIFICATE"],
  ],
  [
    "an unknown authority",
    coded("UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
    ["CONNECT_UNREACHABLE", "TLS_CERTIFICATE", "TLS_CERTIFICATE", "TLS_CERTIFICATE", "TLS_CERTIFICATE"],
  ],
  [
    "a TLS alert",
    coded("ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION"),
    ["FAULT", "TLS_HANDSHAKE", "TLS_HANDSHAKE", "BODY_TRUNCATED", "BODY_TRUNCATED"],
  ],
  [
    "plain text for TLS",
    coded("ERR_SSL_WRONG_VERSION_NUMBER"),
    ["FAULT", "TLS_HANDSHAKE", "TLS_HANDSHAKE", "BODY_TRUNCATED", "BODY_TRUNCATED"],
  ],
  [
    "a parser error, which has no code",
    parserError({ data: "x" }),
    ["CONNECT_UNREACHABLE", "TLS_HANDSHAKE", "HTTP_PROTOCOL", "HTTP_PROTOCOL", "HARMLESS"],
  ],
  [
    "a parser error with a code",
    parserError({ data: "x", code: "HPE_INVALID_CONSTANT" }),
    ["CONNECT_UNREACHABLE", "TLS_HANDSHAKE", "HTTP_PROTOCOL", "HTTP_PROTOCOL", "HARMLESS"],
  ],
  [
    "a parser at the end of its input",
    parserError({ data: "" }),
    ["CONNECT_UNREACHABLE", "TLS_HANDSHAKE", "HTTP_PROTOCOL", "BODY_TRUNCATED", "HARMLESS"],
  ],
  [
    "a length mismatch",
    new errors.ResponseContentLengthMismatchError(),
    ["CONNECT_UNREACHABLE", "TLS_HANDSHAKE", "HTTP_PROTOCOL", "BODY_TRUNCATED", "HARMLESS"],
  ],
  [
    "too many header bytes",
    new errors.HeadersOverflowError(),
    ["CONNECT_UNREACHABLE", "TLS_HANDSHAKE", "HEADERS_TOO_LARGE", "HEADERS_TOO_LARGE", "HEADERS_TOO_LARGE"],
  ],
  [
    "the other side closed",
    new errors.SocketError("other side closed"),
    ["CONNECT_RESET", "TLS_CLOSED", "EMPTY_RESPONSE", "BODY_TRUNCATED", "HARMLESS"],
  ],
  [
    "a bad response",
    new errors.SocketError("bad response"),
    ["CONNECT_RESET", "TLS_CLOSED", "HTTP_PROTOCOL", "HTTP_PROTOCOL", "HARMLESS"],
  ],
  [
    "a bad upgrade",
    new errors.SocketError("bad upgrade"),
    ["CONNECT_RESET", "TLS_CLOSED", "HTTP_PROTOCOL", "HTTP_PROTOCOL", "HARMLESS"],
  ],
  [
    "a client that was destroyed",
    new errors.ClientDestroyedError(),
    ["CONNECT_RESET", "TLS_CLOSED", "EMPTY_RESPONSE", "BODY_TRUNCATED", "HARMLESS"],
  ],
  [
    "a request of ours that was wrong",
    new errors.InvalidArgumentError("x"),
    ["FAULT", "FAULT", "FAULT", "FAULT", "FAULT"],
  ],
  [
    "an assertion of undici's",
    coded("ERR_ASSERTION"),
    ["FAULT", "FAULT", "HTTP_PROTOCOL", "HTTP_PROTOCOL", "HARMLESS"],
  ],
];

describe("classifyError", () => {
  for (const [what, error, meanings] of TABLE) {
    it(`says what ${what} means in each stage`, () => {
      expect(STAGES.map((stage) => classifyError(error, stage))).toEqual(meanings);
    });
  }

  it("calls everything that is no error a fault", () => {
    for (const value of [undefined, null, "ECONNRESET", { code: "ECONNRESET" }]) {
      expect(classifyError(value, "HEAD")).toBe("FAULT");
    }
  });

  it("calls an error it does not know a fault while a request runs", () => {
    expect(classifyError(coded("EWHATEVER"), "HEAD")).toBe("FAULT");
    expect(classifyError(new TypeError("bug"), "BODY")).toBe("FAULT");
  });
});

describe("codeOf", () => {
  it.each([
    [coded("ECONNRESET"), "ECONNRESET"],
    [coded("lower case"), null],
    [coded("A".repeat(61)), null],
    [new Error("none"), null],
    [null, null],
  ])("reads %s as %s", (error, code) => {
    expect(codeOf(error)).toBe(code);
  });
});
