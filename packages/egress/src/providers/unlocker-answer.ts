import type { UpstreamFailure } from "@keble-scraper/contract";
import { parseObject } from "../content/parse-object.ts";
import { parseProxyStatus } from "../proxy/proxy-status.ts";
import type { ResponseHead } from "../transport/response-head.ts";
import { type ProviderRow, readToken, toProviderFailure } from "./provider-failure.ts";
import { readRetryAt } from "../transport/read-retry-after.ts";
import { NOT_THE_API, REFUSED_BY_POLICY, rowOfUnlockerCode, rowOfUnlockerStatus, WRONG_KEY } from "./unlocker-codes.ts";

/**
 * What the head of an answer of the Unlocker's is.
 * - TARGET: the target's own answer, with its status and what of its headers came through.
 * - REFUSED: the provider's own refusal, complete.
 * - REFUSED_IN_BODY: the provider's own refusal, whose reason may stand in its body: see `refusalInBody`.
 * - UNMARKED: a 200 that nobody signed: see `unmarkedRefusal`.
 */
export type UnlockerAnswer =
  | { readonly kind: "TARGET"; readonly head: ResponseHead }
  | { readonly kind: "REFUSED"; readonly failure: UpstreamFailure }
  | { readonly kind: "REFUSED_IN_BODY" }
  | { readonly kind: "UNMARKED" };

/** What `x-brd-debug` says of a request, where it says it. */
export type UnlockerDebug = { readonly isBilled: boolean | null; readonly requestId: string | null };

/** Codes are at most this long; the family `resolve_failed_*` has long ones. */
const CODE_CHARS_MAX = 80;

/**
 * Reads a head. The outer status is the API's own; once the Unlocker was reached it is 200 whatever came of it, the real
 * one is in `x-brd-status-code`, and an error header says that the provider made the answer and not the target.
 */
export function readUnlockerAnswer(head: ResponseHead, wallMs: number): UnlockerAnswer {
  const inner = readStatus(head.value("x-brd-status-code"));
  const code = readErrorCode(head);
  if (code !== null || hasErrorHeader(head)) {
    return { kind: "REFUSED", failure: refusal(head, code, inner ?? head.httpStatus, wallMs) };
  }
  if (head.httpStatus === 400) return { kind: "REFUSED_IN_BODY" };
  // Of the API itself, a 403 is a key without the right to use it.
  if (head.httpStatus === 403) {
    return { kind: "REFUSED", failure: failureOf(head, WRONG_KEY, "HTTP_403", 403, wallMs) };
  }
  if (head.httpStatus !== 200) {
    return { kind: "REFUSED", failure: refusal(head, null, head.httpStatus, wallMs) };
  }
  if (inner === null && !isMarked(head)) return { kind: "UNMARKED" };
  // Some answers come without a status of the target's, which then was a 200; one that is none is no answer of a target's.
  if (inner === null && head.value("x-brd-status-code") !== null) {
    return { kind: "REFUSED", failure: failureOf(head, NOT_THE_API, "UNREADABLE_STATUS", 200, wallMs) };
  }
  return { kind: "TARGET", head: toTargetHead(head, inner ?? 200) };
}

/** The failure of a 400 whose body says why: plain text for the zone, JSON for what we sent. */
export function refusalInBody(head: ResponseHead, text: string, wallMs: number): UpstreamFailure {
  if (/^\s*zone\b.{0,200}\bnot found/isu.test(text)) return failureOf(head, WRONG_KEY, "zone_not_found", 400, wallMs);
  const code = parseObject(text)?.["error_code"];
  return refusal(head, typeof code === "string" ? readToken(code, CODE_CHARS_MAX) : null, 400, wallMs);
}

/**
 * The failure of an unmarked answer with a body: those of the Unlocker's carry its mark, so that this one was made by
 * whatever stands in its place. One without a byte is an `emptyRefusal`.
 */
export function unmarkedRefusal(head: ResponseHead, wallMs: number): UpstreamFailure {
  return failureOf(head, NOT_THE_API, "NOT_THE_API", 200, wallMs);
}

/** The failure of an answer without a byte: how the provider's policy refuses a URL without saying so. */
export function emptyRefusal(head: ResponseHead, httpStatus: number, wallMs: number): UpstreamFailure {
  return failureOf(head, REFUSED_BY_POLICY, "EMPTY_ANSWER", httpStatus, wallMs);
}

/** Reads `key=value; key=value`. */
export function readUnlockerDebug(head: ResponseHead): UnlockerDebug {
  const fields = new Map(
    (head.value("x-brd-debug") ?? "").split(";").map((field) => {
      const [name = "", ...value] = field.split("=");
      return [name.trim().toLowerCase(), value.join("=").trim()];
    }),
  );
  const billed = fields.get("billed")?.toLowerCase();
  return {
    isBilled: billed === "true" ? true : billed === "false" ? false : null,
    requestId: readToken(fields.get("req_id") ?? null, 200),
  };
}

function refusal(head: ResponseHead, code: string | null, httpStatus: number, wallMs: number): UpstreamFailure {
  const known = code === null ? null : rowOfUnlockerCode(code, httpStatus);
  return failureOf(head, known ?? rowOfUnlockerStatus(httpStatus), code ?? `HTTP_${httpStatus}`, httpStatus, wallMs);
}

function failureOf(
  head: ResponseHead,
  row: ProviderRow,
  nativeCode: string,
  httpStatus: number | null,
  wallMs: number,
): UpstreamFailure {
  const { requestId } = readUnlockerDebug(head);
  return toProviderFailure(row, { nativeCode, requestId, httpStatus, retryAt: readRetryAt(head, wallMs) });
}

/** The Unlocker's own header first, then that of the proxies below, then the names of old. */
const CODE_HEADERS = ["x-brd-error-code", "x-brd-err-code", "x-luminati-error-code"] as const;
const TEXT_HEADERS = ["x-brd-error", "x-brd-err-msg", "x-luminati-error"] as const;

function readErrorCode(head: ResponseHead): string | null {
  for (const name of CODE_HEADERS) {
    const code = head
      .values(name)
      .map((value) => readToken(value.trim(), CODE_CHARS_MAX))
      .find((value) => value !== null);
    if (code !== undefined) return code;
  }
  // Some refusals have their code in front of the text, or only in the standard header.
  const details = parseProxyStatus(head.value("proxy-status") ?? "").map((status) => status.details ?? "");
  for (const text of [...details, ...TEXT_HEADERS.flatMap((name) => head.values(name))]) {
    const code = /^\s*((?:client|policy|peer|target)[_-]\d{1,8})\b/iu.exec(text)?.[1];
    if (code !== undefined) return code.toLowerCase().replace("-", "_");
  }
  return null;
}

function hasErrorHeader(head: ResponseHead): boolean {
  return [...CODE_HEADERS, ...TEXT_HEADERS].some((name) => head.values(name).length > 0);
}

function isMarked(head: ResponseHead): boolean {
  return Object.keys(head.headers).some((name) => name.startsWith("x-brd-"));
}

function readStatus(text: string | null): number | null {
  return text !== null && /^[2-9]\d\d$/u.test(text.trim()) ? Number(text) : null;
}

/** Headers of the API's own leg, and its marks: none of them is the target's. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "transfer-encoding",
  "content-length",
  "content-encoding",
  "proxy-status",
]);

function isTargetHeader(name: string): boolean {
  return !OWN_HEADERS.has(name) && !name.startsWith("x-brd-") && !name.startsWith("x-luminati-");
}

/** The target's head as far as it came through. The body's framing and codings stay those of the API's leg. */
function toTargetHead(head: ResponseHead, httpStatus: number): ResponseHead {
  return {
    ...head,
    httpStatus,
    headers: Object.fromEntries(Object.entries(head.headers).filter(([name]) => isTargetHeader(name))),
    mayHaveBody: httpStatus !== 204 && httpStatus !== 304,
  };
}
