import {
  type Action,
  type Disposition,
  type UpstreamCode,
  type UpstreamFailure,
  upstreamFailure,
  type UpstreamOrigin,
} from "@keble-scraper/contract";
import { FAILURE_KINDS, type FailureKind } from "../transport/failure-kind.ts";
import type { PinnedResult } from "../transport/pinned-client.ts";

/** What a provider's answer means: whose doing it was, and what comes next. */
export type ProviderRow = {
  readonly code: UpstreamCode;
  readonly origin: UpstreamOrigin;
  readonly disposition: Disposition;
  readonly action: Action;
};

/** A row of a provider's table; without an action there is nothing to do about it. */
export function row(
  code: ProviderRow["code"],
  origin: ProviderRow["origin"],
  disposition: ProviderRow["disposition"],
  action: ProviderRow["action"] = "NONE",
): ProviderRow {
  return { code, origin, disposition, action };
}

/** The two kinds of suppliers that fetch for us. */
export type ProviderOrigin = Exclude<UpstreamOrigin, "TARGET">;

/** What is recorded beside a row. `httpStatus`: the one the provider reported. `retryAt`: what its Retry-After says. */
export type ProviderEvidence = {
  readonly nativeCode: string | null;
  readonly requestId: string | null;
  readonly httpStatus: number | null;
  readonly retryAt: string | null;
};

export const NO_EVIDENCE: ProviderEvidence = { nativeCode: null, requestId: null, httpStatus: null, retryAt: null };

/**
 * The failure of a row. A retry that knows its time is a RETRY_AT; a spent quota keeps the time as the end of its
 * quarantine. Texts of a provider are never passed on: they may repeat what we sent.
 */
export function toProviderFailure(row: ProviderRow, evidence: ProviderEvidence): UpstreamFailure {
  const { nativeCode, requestId, httpStatus, retryAt } = evidence;
  const isTimed = retryAt !== null && (row.disposition === "RETRY" || row.code === "PROVIDER_QUOTA");
  // The status is the provider's: a failure of the target's must not look as if the target had answered with it.
  const isStatus = row.origin !== "TARGET" && httpStatus !== null && httpStatus >= 100 && httpStatus <= 999;
  const message = row.origin === "TARGET" ? undefined : PROVIDER_TEXTS[row.code];
  return upstreamFailure(row.code, {
    origin: row.origin,
    disposition: isTimed && row.disposition === "RETRY" ? "RETRY_AT" : row.disposition,
    action: row.action,
    ...(message === undefined ? {} : { message }),
    ...(nativeCode === null ? {} : { nativeCode }),
    ...(requestId === null ? {} : { nativeRequestId: requestId }),
    ...(isStatus ? { httpStatus } : {}),
    ...(isTimed ? { retryAt } : {}),
  });
}

/** What a call's own connection met, which is never the target's doing; the body's size is the page's. */
export function toCallFailure(
  result: Extract<PinnedResult, { readonly kind: "FAILED" | "REFUSED" | "ROUTE_FAILED" }>,
  origin: ProviderOrigin,
  requestId: string | null,
): UpstreamFailure {
  if (result.kind === "ROUTE_FAILED") return result.failure;
  if (result.kind === "REFUSED") {
    const row = { code: "PROVIDER_FAILURE", origin, disposition: "RETRY_NEXT_ROUTE", action: "NONE" } as const;
    return toProviderFailure(row, { ...NO_EVIDENCE, nativeCode: "ADDRESS_REFUSED" });
  }
  const evidence = { ...NO_EVIDENCE, nativeCode: result.nativeCode ?? result.failure, requestId };
  return toProviderFailure(rowOfKind(result.failure, origin), evidence);
}

/** The attempt's hard limit passed while the provider worked: nobody can say who was slow. */
export function toTimeout(phase: "HEAD" | "BODY", origin: ProviderOrigin, requestId: string | null): UpstreamFailure {
  const code = phase === "HEAD" ? "RESPONSE_TIMEOUT" : "BODY_TIMEOUT";
  const row = { code, origin, disposition: "RETRY", action: "NONE" } as const;
  return toProviderFailure(row, { ...NO_EVIDENCE, requestId });
}

/** A provider's own token (code, request id), when it looks like one; null for anything else, above all for prose. */
export function readToken(text: string | null, charsMax: number): string | null {
  return text !== null && text.length <= charsMax && /^[\w.:/+=-]+$/u.test(text) ? text : null;
}

/** The table's texts of these codes speak of the target. */
const PROVIDER_TEXTS: Readonly<Partial<Record<UpstreamCode, string>>> = {
  RESPONSE_TIMEOUT: "The provider did not answer in time.",
  BODY_TIMEOUT: "The provider stopped sending.",
  TRUNCATED_BODY: "The provider's answer ended before its end.",
  DECODING_FAILED: "The provider's answer could not be decoded.",
};

/** Kinds that keep their public code when a provider's answer has them. */
const KEPT: ReadonlySet<string> = new Set(["BODY_TIMEOUT", "RESPONSE_TIMEOUT", "TRUNCATED_BODY", "DECODING_FAILED"]);

function rowOfKind(kind: FailureKind, origin: ProviderOrigin): ProviderRow {
  const { code, disposition, action } = FAILURE_KINDS[kind];
  if (code === "BODY_TOO_LARGE") return { code, origin: "TARGET", disposition, action };
  // What would be final with a target is final on this route only.
  const onRoute = disposition === "TERMINAL" ? "RETRY_NEXT_ROUTE" : disposition;
  return { code: KEPT.has(code) ? code : "PROVIDER_FAILURE", origin, disposition: onRoute, action: "NONE" };
}
