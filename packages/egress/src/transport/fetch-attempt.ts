import { localFailure, type LocalFailure, type UpstreamFailure } from "@keble-scraper/contract";
import { isRedirectStatus, type NextUrl, nextUrl } from "../policy/next-url.ts";
import type { VettedUrl, VetUrlOptions } from "../policy/vet-url.ts";
import type { BodySink, SinkStage } from "./body-stage.ts";
import type { EgressLimits } from "./egress-limits.ts";
import type { ExchangeProgress, HeadVerdict } from "./exchange.ts";
import { type FailureKind, toUpstreamFailure } from "./failure-kind.ts";
import type { AdmitHop, HopWait } from "./admission.ts";
import {
  type AttemptUsage,
  FREE_USAGE,
  type FetchOutcome,
  type FetchResponse,
  type FetchTimings,
} from "./fetch-outcome.ts";
import type { FetchRequest } from "./fetch-request.ts";
import { hostKeyOf } from "./host-key.ts";
import { detectCharset } from "../content/detect-charset.ts";
import { matchesContentTypes } from "../content/media-type.ts";
import { sniffType } from "../content/sniff-type.ts";
import type { RobotsGate } from "../robots/robots-gate.ts";
import { judgeStatus } from "./judge-status.ts";
import type { ConnectionScope } from "./connection-pool.ts";
import type { HopTimings, PinnedClient } from "./pinned-client.ts";
import { planRead } from "./read-verdict.ts";
import { isConditional, toRequestHeaders } from "./request-headers.ts";
import type { ResponseHead } from "./response-head.ts";
import { type Stop, STOPPED, untilStop } from "./stop.ts";

/** What an attempt is made of. */
export type AttemptParts = {
  readonly client: PinnedClient;
  readonly policy: VetUrlOptions;
  readonly limits: EgressLimits;
  readonly userAgent: string;
  readonly clock: { monotonicMs(): number; wallMs(): number };
  readonly scope: Omit<ConnectionScope, "callerId">;
  /** Asked about every URL of a chain; null: robots.txt has no say. */
  readonly robots: RobotsGate | null;
};

type AnyFailure = UpstreamFailure | LocalFailure;
type Evidence = {
  readonly timings: FetchTimings;
  readonly sent: boolean;
  readonly hostKey: string;
  readonly usage: AttemptUsage;
};

/** What a hop's head led to. */
type HopDecision =
  | { readonly kind: "ANSWER"; readonly body: SinkStage | null }
  | { readonly kind: "FOLLOW"; readonly url: VettedUrl }
  | { readonly kind: "FAIL"; readonly failure: AnyFailure };

/** Follows a chain from `request.url` to its final response, whose body goes to `sink`. Rejects only with faults. */
export async function fetchAttempt(
  request: FetchRequest,
  sink: BodySink,
  control: { readonly stop: Stop; readonly admit: AdmitHop },
  parts: AttemptParts,
): Promise<FetchOutcome> {
  const { stop, admit } = control;
  const { client, limits, clock } = parts;
  const startedAt = clock.monotonicMs();
  const timings: HopTimings = { dnsMs: null, connectMs: null };
  const progress: ExchangeProgress = { sent: false, head: null, wireBytes: 0 };
  const redirects: { readonly url: string; readonly httpStatus: number }[] = [];
  const seen = new Set([request.url.href]);
  let ttfbMs: number | null = null;
  let body: SinkStage | null = null;
  let url = request.url;
  let headers = request.headers;

  const evidence = (): Evidence => ({
    timings: {
      dnsMs: toWholeMs(timings.dnsMs),
      connectMs: toWholeMs(timings.connectMs),
      ttfbMs: toWholeMs(ttfbMs),
      totalMs: Math.round(clock.monotonicMs() - startedAt),
    },
    sent: progress.sent,
    hostKey: hostKeyOf(url),
    usage: FREE_USAGE,
  });
  const unsuccessful = () => ({
    ok: false as const,
    ...evidence(),
    httpStatus: progress.head?.httpStatus ?? redirects.at(-1)?.httpStatus ?? null,
    bodyBytes: body?.bytes() ?? 0,
    wireBytes: progress.wireBytes,
  });
  const failWith = (failure: AnyFailure): FetchOutcome => ({
    ...unsuccessful(),
    aborted: false,
    failure,
    refusedBody: null,
  });
  const giveBack = (wait: HopWait | null): FetchOutcome => ({ ...unsuccessful(), aborted: true, failure: null, wait });
  const failAs = (kind: FailureKind, nativeCode: string | null): FetchOutcome =>
    failWith(toUpstreamFailure(kind, { httpStatus: progress.head?.httpStatus ?? null, nativeCode }));
  const stopped = (): FetchOutcome => {
    if (stop.reason === "DEADLINE") return failWith(localFailure("DEADLINE_EXCEEDED"));
    if (stop.reason === "ATTEMPT_LIMIT") {
      return failAs(progress.head === null ? "ATTEMPT_TIMEOUT_IN_HEAD" : "ATTEMPT_TIMEOUT_IN_BODY", null);
    }
    return giveBack(null);
  };

  const decide = (head: ResponseHead): { readonly decision: HopDecision; readonly verdict: HeadVerdict } => {
    const next = isRedirectStatus(head.httpStatus)
      ? nextUrl(url, head.values("location"), parts.policy)
      : ({ kind: "FINAL" } as const);
    if (next.kind !== "FINAL") return skip(decideRedirect(next, head.httpStatus, seen, redirects.length, limits));
    const failure = judgeStatus(head, {
      accept: request.accept,
      isConditional: isConditional(headers),
      wallMs: clock.wallMs(),
    });
    if (failure !== null) return skip({ kind: "FAIL", failure });
    if (request.contentTypes !== null && !matchesContentTypes(head.value("content-type"), request.contentTypes)) {
      const unwanted = toUpstreamFailure("UNWANTED_CONTENT_TYPE", { httpStatus: head.httpStatus });
      return skip({ kind: "FAIL", failure: unwanted });
    }
    const plan = planRead(head, sink, request.maxBodyBytes, limits);
    ({ body } = plan);
    return { decision: { kind: "ANSWER", body }, verdict: plan.verdict };
  };

  for (;;) {
    // Before robots.txt is asked: an attempt that ends there has no head of this hop yet.
    progress.head = null;
    progress.wireBytes = 0;
    let crawlDelayMs: number | null = null;
    if (parts.robots !== null) {
      const verdict = await untilStop(stop, parts.robots.check(url, { signal: stop.signal, admit }));
      if (verdict === STOPPED) return stopped();
      if (verdict.kind === "WAIT") return giveBack(verdict.wait);
      if (verdict.kind === "DISALLOWED") return failWith(localFailure("ROBOTS_DISALLOWED"));
      if (verdict.kind === "FAILED") {
        return redirects.length > 0 && verdict.failure.code === "TARGET_FORBIDDEN"
          ? failAs("REDIRECT_REJECTED", null)
          : failWith(verdict.failure);
      }
      ({ crawlDelayMs } = verdict);
    }
    const admitted = await admit({ url, purpose: "PAGE", isFirst: !progress.sent, crawlDelayMs, stop });
    if (admitted.kind === "STOPPED") return stopped();
    if (admitted.kind === "WAIT") return giveBack(admitted.wait);
    let decision: HopDecision | null = null;
    const sending = client.request({
      scope: { ...parts.scope, callerId: request.callerId },
      url,
      request: { method: request.method, target: url.target, headers: toRequestHeaders(url, headers, parts.userAgent) },
      stop,
      progress,
      timings,
      onHead(head) {
        ttfbMs = clock.monotonicMs() - startedAt;
        const decided = decide(head);
        ({ decision } = decided);
        return decided.verdict;
      },
    });
    const result = await sending.finally(admitted.done);
    if (result.kind === "STOPPED") return stopped();
    if (result.kind === "REFUSED") {
      return redirects.length === 0 ? failWith(localFailure("TARGET_FORBIDDEN")) : failAs("REDIRECT_REJECTED", null);
    }
    if (result.kind === "FAILED") return failAs(result.failure, result.nativeCode);
    const made = decision as HopDecision | null;
    if (made === null) throw new Error("a response ended without a decision about its head");
    if (made.kind === "FAIL") return failWith(made.failure);
    if (made.kind === "ANSWER") {
      return {
        ok: true,
        ...evidence(),
        response: await toResponse(result.head, url, redirects, made.body, progress.wireBytes),
      };
    }
    redirects.push({ url: url.href, httpStatus: result.head.httpStatus });
    // Scheme, host or port changed: nothing of the caller's goes there.
    if (made.url.origin !== url.origin) headers = {};
    ({ url } = made);
    seen.add(url.href);
  }
}

function skip(decision: HopDecision): { readonly decision: HopDecision; readonly verdict: HeadVerdict } {
  return { decision, verdict: { do: "SKIP" } };
}

function decideRedirect(
  next: Exclude<NextUrl, { readonly kind: "FINAL" }>,
  httpStatus: number,
  seen: ReadonlySet<string>,
  followed: number,
  limits: EgressLimits,
): HopDecision {
  const fail = (kind: FailureKind): HopDecision => ({ kind: "FAIL", failure: toUpstreamFailure(kind, { httpStatus }) });
  if (next.kind === "REJECTED") return fail("REDIRECT_REJECTED");
  if (next.kind === "INVALID") return fail("REDIRECT_INVALID");
  if (seen.has(next.url.href)) return fail("REDIRECT_LOOP");
  return followed >= limits.redirectsMax ? fail("REDIRECT_LIMIT") : next;
}

async function toResponse(
  head: ResponseHead,
  url: VettedUrl,
  redirects: FetchResponse["redirects"],
  body: SinkStage | null,
  wireBytes: number,
): Promise<FetchResponse> {
  const declared = head.value("content-type");
  const sample = body?.sample() ?? Buffer.alloc(0);
  return {
    httpStatus: head.httpStatus,
    finalUrl: url.href,
    redirects,
    headers: head.headers,
    contentType: { declared, sniffed: await sniffType(sample, declared) },
    charset: detectCharset(sample, declared),
    framing: head.framing,
    bodyBytes: body?.bytes() ?? 0,
    wireBytes,
    hasBody: body !== null,
  };
}

function toWholeMs(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms);
}
