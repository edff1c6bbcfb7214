import type { LocalFailure, UpstreamFailure } from "@keble-scraper/contract";
import { type BodyScreen, createBodyScreen } from "../block-pages/body-screen.ts";
import { matchesContentTypes } from "../content/media-type.ts";
import type { VettedUrl } from "../policy/vet-url.ts";
import type { BodySink, SinkStage } from "./body-stage.ts";
import type { HeadVerdict } from "./exchange.ts";
import { toUpstreamFailure } from "./failure-kind.ts";
import type { FetchRequest } from "./fetch-request.ts";
import { judgeAnswer } from "./judge-answer.ts";
import { judgeRedirect, type RedirectRules } from "./judge-redirect.ts";
import { judgeStatus } from "./judge-status.ts";
import { planRead } from "./read-verdict.ts";
import { planRefusedRead, type RefusedReading } from "./refused-body.ts";
import type { ResponseHead } from "./response-head.ts";

/**
 * What a hop's head led to. `body`: what an answer's body ends in; null when it has none. `screen`: what a wall's page in its
 * place would be found by; null where no wall looks like this. `refused`: the reading of a failed answer's body; null when
 * it is no evidence.
 */
export type HopDecision =
  | { readonly kind: "ANSWER"; readonly body: SinkStage | null; readonly screen: BodyScreen | null }
  | { readonly kind: "FOLLOW"; readonly url: VettedUrl }
  | {
      readonly kind: "FAIL";
      readonly failure: UpstreamFailure | LocalFailure;
      readonly refused: RefusedReading | null;
    };

/** What a head is judged by: the hop it answers, and what the attempt wants. */
export type HeadRules = RedirectRules & {
  /** Whether this hop's request carried the caller's condition. */
  readonly isConditional: boolean;
  readonly request: Pick<FetchRequest, "accept" | "contentTypes" | "maxBodyBytes">;
  readonly sink: BodySink;
  readonly wallMs: number;
  /** ROBOTS: a refused robots.txt has a meaning of its own, whoever refuses it, and is nobody's evidence. */
  readonly purpose: "PAGE" | "ROBOTS";
};

/** Decides, from a final head alone, whether to follow, refuse or read, and what is to happen to the body. */
export function judgeHead(
  head: ResponseHead,
  rules: HeadRules,
): { readonly decision: HopDecision; readonly verdict: HeadVerdict } {
  const { request, isConditional, wallMs } = rules;
  const redirect = judgeRedirect(head, rules);
  if (redirect.kind === "FOLLOW") return skip(redirect);
  if (redirect.kind === "FAIL") return skip({ ...redirect, refused: null });
  const isPage = rules.purpose === "PAGE";
  const judge = isPage ? judgeAnswer : judgeStatus;
  const failure = judge(head, { accept: request.accept, isConditional, wallMs });
  if (failure !== null) {
    if (!isPage) return skip({ kind: "FAIL", failure, refused: null });
    const refused = planRefusedRead(head, rules.url, request.maxBodyBytes, rules.limits);
    return { decision: { kind: "FAIL", failure, refused }, verdict: refused.verdict };
  }
  if (request.contentTypes !== null && !matchesContentTypes(head.value("content-type"), request.contentTypes)) {
    const unwanted = toUpstreamFailure("UNWANTED_CONTENT_TYPE", { httpStatus: head.httpStatus });
    return skip({ kind: "FAIL", failure: unwanted, refused: null });
  }
  const screen = isPage && head.mayHaveBody ? createBodyScreen(head, rules.sink) : null;
  const { verdict, body } = planRead(head, screen ?? rules.sink, request.maxBodyBytes, rules.limits);
  return { decision: { kind: "ANSWER", body, screen }, verdict };
}

function skip(decision: HopDecision): { readonly decision: HopDecision; readonly verdict: HeadVerdict } {
  return { decision, verdict: { do: "SKIP" } };
}
