import { describe, expect, it } from "vitest";
import { classifyNetError, readNetError } from "./classify-net-error.ts";

describe("classifyNetError", () => {
  it.each([
    ["ERR_NAME_NOT_RESOLVED", "DNS_NOT_FOUND"],
    ["ERR_CONNECTION_REFUSED", "CONNECT_REFUSED"],
    ["ERR_CONNECTION_TIMED_OUT", "CONNECT_TIMEOUT"],
    ["ERR_TIMED_OUT", "HEADERS_TIMEOUT"],
    ["ERR_EMPTY_RESPONSE", "EMPTY_RESPONSE"],
    ["ERR_CERT_DATE_INVALID", "TLS_CERTIFICATE"],
    ["ERR_CERT_COMMON_NAME_INVALID", "TLS_CERTIFICATE"],
    ["ERR_SSL_VERSION_OR_CIPHER_MISMATCH", "TLS_HANDSHAKE"],
    ["ERR_TOO_MANY_REDIRECTS", "REDIRECT_LIMIT"],
    ["ERR_RESPONSE_HEADERS_MULTIPLE_LOCATION", "REDIRECT_INVALID"],
    ["ERR_RESPONSE_HEADERS_TOO_BIG", "HEADERS_TOO_LARGE"],
    ["ERR_CONTENT_LENGTH_MISMATCH", "BODY_TRUNCATED"],
    ["ERR_CONTENT_DECODING_FAILED", "DECODE_ERROR"],
    ["ERR_HTTP2_PROTOCOL_ERROR", "HTTP_PROTOCOL"],
  ])("%s is %s", (code, kind) => {
    expect(classifyNetError(code)).toBe(kind);
  });

  it("blames no target for what happens between the browser and our proxy", () => {
    for (const code of ["ERR_TUNNEL_CONNECTION_FAILED", "ERR_PROXY_CONNECTION_FAILED", "ERR_ABORTED", "ERR_NEW"]) {
      expect(classifyNetError(code)).toBe("RENDER_FAILED");
    }
  });
});

describe("readNetError", () => {
  it("keeps nothing but the error's own name", () => {
    expect(readNetError("net::ERR_ABORTED")).toBe("ERR_ABORTED");
    expect(readNetError("page.goto: net::ERR_FAILED at http://secret.example/")).toBe("ERR_FAILED");
    expect(readNetError("whatever")).toBe("ERR_UNKNOWN");
  });
});
