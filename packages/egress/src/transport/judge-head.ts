import type { LocalFailure, UpstreamFailure } from "@keble-scraper/contract";
import { matchesContentTypes } from "../content/media-type.ts";
import { isRedirectStatus, type NextUrl, nextUrl } from "../policy/next-url.ts";
import type { VettedUrl, VetUrlOptions } from "../policy/vet-url.ts";
import type { BodySink, SinkStage } from "./body-stage.ts";
import type { EgressLimits } from "./egress-limits.ts";
import type { HeadVerdict } from "./exchange.ts";
import { type FailureKind, toUpstreamFailure } from "./failure-kind.ts";
import { judgeStatus } from "./judge-status.ts";
import { planRead } from "./read-verdict.ts";
import type { ResponseHead } from "./response-head.ts";

/** What a hop's head led to. `body`: what an answer's body ends in; null when it has none. */
export type HopDecision =
  | { readonly kind: "ANSWER"; readonly body: SinkStage | null }
  | { readonly kind: "FOLLOW"; readonly url: VettedUrl }
  | { readonly kind: "FAIL"; readonly failure: UpstreamFailure | LocalFailure };

/** What a head is judged by: the hop it answers, and what the attempt wants. */
export type HeadRules = {
  readonly url: VettedUrl;
  /** URLs of the chain so far, this hop's among them. */
  readonly seen: ReadonlySet<string>;
  readonly redirectsFollowed: number;
  /** Whether this hop's request carried the caller's condition. */
  readonly isConditional: boolean;
  readonly accept: "SUCCESS_ONLY" | "ANY_RESPONSE";
  readonly contentTypes: readonly string[] | null;
  readonly maxBodyBytes: number;
  readonly policy: VetUrlOptions;
  readonly limits: EgressLimits;
  readonly sink: BodySink;
  readonly wallMs: number;
};

/** Decides, from a final head alone, whether to follow, refuse or read, and what is to happen to the body. */
export function judgeHead(
  head: ResponseHead,
  rules: HeadRules,
): { readonly decision: HopDecision; readonly verdict: HeadVerdict } {
  const next = isRedirectStatus(head.httpStatus)
    ? nextUrl(rules.url, head.values("location"), rules.policy)
    : ({ kind: "FINAL" } as const);
  if (next.kind !== "FINAL") return skip(decideRedirect(next, head.httpStatus, rules));
  const failure = judgeStatus(head, rules);
  if (failure !== null) return skip({ kind: "FAIL", failure });
  if (rules.contentTypes !== null && !matchesContentTypes(head.value("content-type"), rules.contentTypes)) {
    const unwanted = toUpstreamFailure("UNWANTED_CONTENT_TYPE", { httpStatus: head.httpStatus });
    return skip({ kind: "FAIL", failure: unwanted });
  }
  const { verdict, body } = planRead(head, rules.sink, rules.maxBodyBytes, rules.limits);
  return { decision: { kind: "ANSWER", body }, verdict };
}

function skip(decision: HopDecision): { readonly decision: HopDecision; readonly verdict: HeadVerdict } {
  return { decision, verdict: { do: "SKIP" } };
}

function decideRedirect(
  next: Exclude<NextUrl, { readonly kind: "FINAL" }>,
  httpStatus: number,
  { seen, redirectsFollowed, limits }: HeadRules,
): HopDecision {
  const fail = (kind: FailureKind): HopDecision => ({ kind: "FAIL", failure: toUpstreamFailure(kind, { httpStatus }) });
  if (next.kind === "REJECTED") return fail("REDIRECT_REJECTED");
  if (next.kind === "INVALID") return fail("REDIRECT_INVALID");
  if (seen.has(next.url.href)) return fail("REDIRECT_LOOP");
  return redirectsFollowed >= limits.redirectsMax ? fail("REDIRECT_LIMIT") : next;
}
