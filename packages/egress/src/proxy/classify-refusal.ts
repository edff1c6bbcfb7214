import { type UpstreamFailure, upstreamFailure } from "@keble-scraper/contract";
import { isObject, parseObject } from "../content/parse-object.ts";
import { readRetryAt } from "../transport/read-retry-after.ts";
import {
  ACCOUNT_REFUSED,
  meaningOfBrightDataCode,
  NO_PEER,
  NOT_ALLOWED,
  type RefusalMeaning,
  SLOW_DOWN,
} from "./bright-data-errors.ts";
import type { ConnectHead } from "./connect-head.ts";
import type { ExitWish, ProxyProvider } from "./proxy-credentials.ts";
import { parseProxyStatus } from "./proxy-status.ts";

/** Why a tunnel could not be had although nobody answered that it could not. */
export type ProxySilence =
  | "PROXY_UNREACHABLE"
  | "PROXY_TIMEOUT"
  | "PROXY_CLOSED"
  | "PROXY_MALFORMED_ANSWER"
  | "PROXY_HEAD_TOO_LARGE";

/** A refusal with what is known about its request. `body`: at most 4 KiB of it. `wallMs`: epoch milliseconds. */
export type Refusal = {
  readonly head: ConnectHead;
  readonly body: Buffer;
  readonly provider: ProxyProvider;
  readonly wish: ExitWish;
  readonly wallMs: number;
};

/** The failure of an answer to CONNECT that is no 2xx. Names no host, address or credential. */
export function classifyRefusal(refusal: Refusal): UpstreamFailure {
  const { head, wallMs } = refusal;
  const { meaning, nativeCode } = meaningOf(refusal);
  const retryAt = meaning.origin === "TARGET" ? null : readRetryAt(head, wallMs);
  return upstreamFailure(meaning.code, {
    origin: meaning.origin,
    action: meaning.action,
    disposition: retryAt !== null && meaning.disposition === "RETRY" ? "RETRY_AT" : meaning.disposition,
    httpStatus: head.httpStatus,
    ...(nativeCode === null ? {} : { nativeCode }),
    ...(retryAt !== null && TIMED_CODES.has(meaning.code) ? { retryAt } : {}),
  });
}

/** The failure of a proxy that gave no answer, or none that could be read. `errorCode`: Node's own, where there was one. */
export function silenceFailure(silence: ProxySilence, errorCode: string | null = null): UpstreamFailure {
  return upstreamFailure("PROXY_FAILURE", { nativeCode: errorCode ?? silence });
}

/** Whether the body of a refusal may say what its head does not: Bright Data puts some account refusals there, as JSON. */
export function isBodyWanted(head: ConnectHead, provider: ProxyProvider): boolean {
  return provider === "BRIGHT_DATA" && codeInHead(head) === null && /json/i.test(head.value("content-type") ?? "");
}

type Reading = { readonly meaning: RefusalMeaning; readonly nativeCode: string | null };

function meaningOf(refusal: Refusal): Reading {
  const { head, provider } = refusal;
  const bright = provider === "BRIGHT_DATA" ? meaningOfBrightData(refusal) : null;
  if (bright !== null) return bright;
  const error = parseProxyStatus(head.value("proxy-status") ?? "").find((status) => status.error !== null)?.error;
  const standard = error == null || !Object.hasOwn(PROXY_STATUS_ERRORS, error) ? undefined : PROXY_STATUS_ERRORS[error];
  if (error != null && standard !== undefined) return { meaning: standard, nativeCode: error };
  return { meaning: meaningOfStatus(head.httpStatus, provider), nativeCode: null };
}

function meaningOfBrightData({ head, body, wish }: Refusal): Reading | null {
  const code = codeInHead(head) ?? codeInBody(body);
  const meaning = code === null ? null : meaningOfBrightDataCode(code, head.httpStatus);
  if (meaning === null) {
    const text = textsOf(head).find((value) => value.startsWith("Proxy Error"));
    if (text === undefined) return null;
    return /no peers? available/i.test(text)
      ? { meaning: NO_PEER, nativeCode: "no_peers_available" }
      : { meaning: { ...BROKEN, action: "ROTATE_SESSION" }, nativeCode: "proxy_error" };
  }
  // A country that the vendor does not know reads as a wrong password: one job's wish must not shut the route for all.
  const isDoubtful = code === UNREADABLE_USER_NAME && wish.country !== null;
  return { meaning: isDoubtful ? NOT_ALLOWED : meaning, nativeCode: code };
}

/** By status alone. Bright Data answers 402 for a rule about targets and 403 for its policies, with or without a code. */
function meaningOfStatus(httpStatus: number, provider: ProxyProvider): RefusalMeaning {
  if (httpStatus === 407) return ACCOUNT_REFUSED;
  if (httpStatus === 429) return SLOW_DOWN;
  if (httpStatus >= 500 || httpStatus === 408) return BROKEN;
  if (provider === "BRIGHT_DATA" && httpStatus === 401) return ACCOUNT_REFUSED;
  if (provider === "BRIGHT_DATA" && (httpStatus === 402 || httpStatus === 403)) return NOT_ALLOWED;
  return DENIED;
}

/** The proxy, or the way behind it, does not work at the moment. */
const BROKEN: RefusalMeaning = {
  code: "PROXY_FAILURE",
  origin: "PAID_EGRESS",
  disposition: "RETRY",
  action: "NONE",
};

/** The proxy works and will not do it. */
const DENIED: RefusalMeaning = {
  code: "PROXY_FAILURE",
  origin: "PAID_EGRESS",
  disposition: "TERMINAL",
  action: "CHANGE_REQUEST",
};

const UNREADABLE_USER_NAME = "client_10001";

/** Failures whose Retry-After says something: a wrong password is not mended by waiting. */
const TIMED_CODES: ReadonlySet<string> = new Set(["PROVIDER_CAPACITY", "PROVIDER_QUOTA", "PROXY_FAILURE"]);

function targetRetry(code: "DNS_FAILURE" | "CONNECT_FAILURE" | "CONNECT_TIMEOUT"): RefusalMeaning {
  return { code, origin: "TARGET", disposition: "RETRY", action: "NONE" };
}

/** Error types of RFC 9209 section 2.3 that say more than a status; what they leave open, the status decides. */
const PROXY_STATUS_ERRORS: Readonly<Record<string, RefusalMeaning>> = {
  dns_timeout: targetRetry("DNS_FAILURE"),
  dns_error: targetRetry("DNS_FAILURE"),
  destination_unavailable: targetRetry("CONNECT_FAILURE"),
  destination_ip_unroutable: targetRetry("CONNECT_FAILURE"),
  destination_ip_prohibited: NOT_ALLOWED,
  connection_refused: targetRetry("CONNECT_FAILURE"),
  connection_terminated: targetRetry("CONNECT_FAILURE"),
  connection_timeout: targetRetry("CONNECT_TIMEOUT"),
  connection_limit_reached: SLOW_DOWN,
};

/** Newest first; the last one still stands in the vendor's examples. */
const CODE_HEADERS = ["x-brd-err-code", "x-brd-error-code", "x-luminati-error-code"] as const;
const TEXT_HEADERS = ["x-brd-error", "x-brd-err-msg", "x-luminati-error"] as const;

function textsOf(head: ConnectHead): readonly string[] {
  return TEXT_HEADERS.flatMap((name) => head.values(name));
}

function codeInHead(head: ConnectHead): string | null {
  const named = CODE_HEADERS.flatMap((name) => head.values(name))
    .map(toCode)
    .find((code) => code !== null);
  if (named !== undefined) return named;
  const statuses = parseProxyStatus(head.value("proxy-status") ?? "");
  const texts = [...statuses.map(({ details }) => details ?? ""), ...textsOf(head)];
  return texts.map((text) => toCode(text.split(":")[0] ?? "")).find((code) => code !== null) ?? null;
}

/** `{"error":{"code":"kyc_required",…}}` */
function codeInBody(body: Buffer): string | null {
  const error = parseObject(body.toString("utf8"))?.["error"];
  return isObject(error) && typeof error["code"] === "string" ? toCode(error["code"]) : null;
}

/** A code as the table spells it; the vendor writes some with a dash. Null for what does not look like one. */
function toCode(text: string): string | null {
  const code = text.trim().toLowerCase().replaceAll("-", "_");
  return /^(?:(?:client|policy|peer|target)_\d{1,8}|kyc_required|business_account_required)$/.test(code) ? code : null;
}
