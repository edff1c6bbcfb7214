import type { FailureKind } from "./failure-kind.ts";

/**
 * Where an error was raised: while dialling TCP, in the TLS handshake, before the final response head, inside a body, or
 * behind the head of a response that has no body (204, 304, HEAD).
 */
export type ErrorStage = "TCP" | "TLS" | "HEAD" | "BODY" | "NO_BODY";

/**
 * What an error of Node, OpenSSL or undici means. `HARMLESS` is a complaint about the missing body of a response that has
 * none; `FAULT` is a mistake of ours, to be thrown.
 */
export type ErrorMeaning = FailureKind | "HARMLESS" | "FAULT";

/** What ECONNRESET is called on a socket that carries requests, so that undici does not see one. */
export const PEER_RESET = "PEER_RESET";

const UNREACHABLE: ReadonlySet<string> = new Set([
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EHOSTDOWN",
  "ENETDOWN",
  "EADDRNOTAVAIL",
  "EAFNOSUPPORT",
  "EACCES",
  "EPERM",
  "EINVAL",
]);
/** The peer went away, or we closed the socket under the request. */
const CLOSED: ReadonlySet<string> = new Set([
  "UND_ERR_SOCKET",
  "UND_ERR_DESTROYED",
  "UND_ERR_CLOSED",
  "UND_ERR_ABORTED",
  "UND_ERR_INFO",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTCONN",
]);

/** OpenSSL's certificate verdicts, as Node names them, by their beginnings. */
const CERTIFICATE =
  /^(?:CERT_|ERR_TLS_CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|CRL_|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_|HOSTNAME_MISMATCH|ERROR_IN_CERT_|EE_CERTIFICATE_|CA_)/;

/** An assertion of undici's own. */
const ASSERTION = "ERR_ASSERTION";

/** Mistakes in how we called undici or Node. */
const OURS: ReadonlySet<string> = new Set([
  "UND_ERR_INVALID_ARG",
  "UND_ERR_INVALID_RETURN_VALUE",
  "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH",
  "UND_ERR_NOT_SUPPORTED",
  "ERR_INVALID_ARG_TYPE",
  "ERR_INVALID_ARG_VALUE",
]);

/**
 * The one map from errors to kinds, matched on codes, for undici 7.30. The figures behind each line were measured: a
 * parser error has no code at all, and one behind a Content-Length poses as a length mismatch.
 */
export function classifyError(error: unknown, stage: ErrorStage): ErrorMeaning {
  const code = codeOf(error) ?? "";
  const name = error instanceof Error ? error.name : "";
  if (OURS.has(code) || !(error instanceof Error)) return "FAULT";
  if (code === ASSERTION) return classifyAssertion(stage);
  if (stage === "TCP") return classifyTcp(code);
  if (stage === "TLS") return classifyTls(code);
  if (CERTIFICATE.test(code)) return "TLS_CERTIFICATE";
  // An alert behind the handshake: TLS 1.3 refuses a missing client certificate only then.
  if (code.startsWith("ERR_SSL_")) return stage === "HEAD" ? "TLS_HANDSHAKE" : "BODY_TRUNCATED";
  if (code === "UND_ERR_HEADERS_OVERFLOW") return "HEADERS_TOO_LARGE";
  if (stage === "NO_BODY") return "HARMLESS";
  if (name === "HTTPParserError" || code.startsWith("HPE_"))
    return isEndOfInput(error, stage) ? "BODY_TRUNCATED" : "HTTP_PROTOCOL";
  // Without a delivered head the mismatch is a masked parser error; with one, the body was cut.
  if (code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH") return stage === "HEAD" ? "HTTP_PROTOCOL" : "BODY_TRUNCATED";
  if (code === "UND_ERR_SOCKET" && (error.message === "bad response" || error.message === "bad upgrade")) {
    return "HTTP_PROTOCOL";
  }
  if (CLOSED.has(code) || UNREACHABLE.has(code)) {
    return stage === "HEAD" ? "EMPTY_RESPONSE" : "BODY_TRUNCATED";
  }
  return "FAULT";
}

/** The error's own code, when it looks like one: upper case, digits and underscores, at most 60 characters. */
export function codeOf(error: unknown): string | null {
  if (typeof error !== "object" || error === null || !("code" in error)) return null;
  if (error.code === PEER_RESET) return "ECONNRESET";
  return typeof error.code === "string" && /^[A-Z0-9_]{1,60}$/.test(error.code) ? error.code : null;
}

/** Whether the error is an assertion of undici's: a fault of ours, unless it is raised over the bytes of a response. */
export function isAssertion(error: unknown): boolean {
  return codeOf(error) === ASSERTION;
}

function classifyTcp(code: string): ErrorMeaning {
  if (code === "ECONNREFUSED") return "CONNECT_REFUSED";
  if (code === "ETIMEDOUT") return "CONNECT_TIMEOUT";
  if (CLOSED.has(code)) return "CONNECT_RESET";
  // Whatever else the kernel says about a SYN: there is no way there.
  return code.startsWith("ERR_") ? "FAULT" : "CONNECT_UNREACHABLE";
}

function classifyTls(code: string): ErrorMeaning {
  if (CERTIFICATE.test(code)) return "TLS_CERTIFICATE";
  if (CLOSED.has(code)) return "TLS_CLOSED";
  return "TLS_HANDSHAKE";
}

/**
 * undici asserts where its parser should have complained: a 101 that nobody asked for and a status under 100 get that far
 * (7.30). Before a request has gone out there is no response to blame.
 */
function classifyAssertion(stage: ErrorStage): ErrorMeaning {
  if (stage === "TCP" || stage === "TLS") return "FAULT";
  return stage === "NO_BODY" ? "HARMLESS" : "HTTP_PROTOCOL";
}

/**
 * When a connection that announced its close ends inside a chunked body, the parser itself complains, about the end of
 * its input: no bytes are left over then, while a real violation points at the byte that broke the rule.
 */
function isEndOfInput(error: Error, stage: ErrorStage): boolean {
  return stage === "BODY" && "data" in error && error.data === "";
}
