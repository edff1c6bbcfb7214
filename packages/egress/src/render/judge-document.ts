import { type UpstreamFailure, upstreamFailure } from "@keble-scraper/contract";
import { matchesContentTypes, readMediaType } from "../content/media-type.ts";
import type { VettedUrl } from "../policy/vet-url.ts";
import type { EgressLimits } from "../transport/egress-limits.ts";
import { type FailureKind, toUpstreamFailure } from "../transport/failure-kind.ts";
import type { FetchRequest } from "../transport/fetch-request.ts";
import { judgeAnswer } from "../transport/judge-answer.ts";
import { judgeRedirect, type RedirectRules } from "../transport/judge-redirect.ts";
import type { ResponseHead } from "../transport/response-head.ts";

/**
 * What the head of a page's own document leads to. RENDER: show it. EMPTY: an answer without a body. FAIL with `isEvidence`:
 * the start of its body is kept.
 */
export type DocumentVerdict =
  | { readonly kind: "RENDER" }
  | { readonly kind: "EMPTY" }
  | { readonly kind: "FOLLOW"; readonly url: VettedUrl }
  | { readonly kind: "FAIL"; readonly failure: UpstreamFailure; readonly isEvidence: boolean };

/** What it is judged by: the hop it answers, and what the attempt wants. */
export type DocumentRules = RedirectRules & {
  readonly isConditional: boolean;
  readonly request: Pick<FetchRequest, "accept" | "contentTypes">;
  /** A document that declares more is not begun. */
  readonly declaredBytesMax: number;
  readonly wallMs: number;
};

/** Judges a document by its head as a fetch would, before the browser sees any of it. */
export function judgeDocument(head: ResponseHead, rules: DocumentRules): DocumentVerdict {
  const { httpStatus } = head;
  const failAs = (kind: FailureKind): DocumentVerdict => ({
    kind: "FAIL",
    failure: toUpstreamFailure(kind, { httpStatus }),
    isEvidence: false,
  });
  if (isTooMuch(head, rules.limits)) return failAs("HEADERS_TOO_LARGE");
  const redirect = judgeRedirect(head, rules);
  if (redirect.kind === "FOLLOW") return redirect;
  if (redirect.kind === "FAIL") return { ...redirect, isEvidence: false };
  const { isConditional, wallMs } = rules;
  const { accept, contentTypes } = rules.request;
  const failure = judgeAnswer(head, { accept, isConditional, wallMs });
  if (failure !== null) return { kind: "FAIL", failure, isEvidence: head.mayHaveBody };
  const declared = head.value("content-type");
  if (contentTypes !== null && !matchesContentTypes(declared, contentTypes)) return failAs("UNWANTED_CONTENT_TYPE");
  // 205 has no body either, and no document: a browser stays where it is.
  if (!head.mayHaveBody || httpStatus === 205) return { kind: "EMPTY" };
  if ((head.declaredBytes ?? 0) > rules.declaredBytesMax) return failAs("BODY_TOO_LARGE");
  return readMediaType(declared)?.essence === "application/pdf"
    ? { kind: "FAIL", failure: notAPage(httpStatus), isEvidence: false }
    : { kind: "RENDER" };
}

/** What a browser would save instead of showing it, or shows in a viewer of its own. */
export function notAPage(httpStatus: number): UpstreamFailure {
  return upstreamFailure("RENDER_FAILED", {
    origin: "TARGET",
    disposition: "TERMINAL",
    action: "CHANGE_REQUEST",
    message: "The target is a download, not a page.",
    nativeCode: "DOWNLOAD",
    httpStatus,
  });
}

/** Chromium's own limit on heads is sixteen times ours. */
function isTooMuch(head: ResponseHead, { headerBytesMax, headerLinesMax }: EgressLimits): boolean {
  const lines = Object.keys(head.headers).flatMap((name) =>
    head.values(name).map((value) => name.length + value.length),
  );
  return lines.length > headerLinesMax || lines.reduce((sum, size) => sum + size, 0) > headerBytesMax;
}
