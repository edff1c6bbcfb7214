import type { UpstreamFailure } from "@keble-scraper/contract";
import { isRedirectStatus, nextUrl } from "../policy/next-url.ts";
import { vetUrl, type VettedUrl, type VetUrlOptions } from "../policy/vet-url.ts";
import type { BodySink } from "../transport/body-stage.ts";
import type { HeadVerdict } from "../transport/exchange.ts";
import { toUpstreamFailure } from "../transport/failure-kind.ts";
import { type HopDecision, judgeHead } from "../transport/judge-head.ts";
import { planRefusedRead, type RefusedReading } from "../transport/refused-body.ts";
import type { ResponseHead } from "../transport/response-head.ts";
import { NO_REDIRECTS, toFetchResponse } from "../transport/to-fetch-response.ts";
import type { UnlockerApi } from "./probe-unlocker.ts";
import type { ProviderClient } from "./provider-client.ts";
import { toCallFailure } from "./provider-failure.ts";
import type { ProviderAsk, ProviderCallContext, ProviderCallEnd } from "./provider-transport.ts";
import { failedPage, walledPage } from "./provider-page.ts";
import {
  emptyRefusal,
  readUnlockerAnswer,
  readUnlockerDebug,
  refusalInBody,
  unmarkedRefusal,
} from "./unlocker-answer.ts";

/** What a call is made with. */
export type UnlockerParts = {
  readonly api: UnlockerApi;
  readonly client: ProviderClient;
  readonly policy: VetUrlOptions;
  readonly clock: { wallMs(): number };
};

/** Refusals of the API's own are a line of text or a small object. */
const REASON_BYTES_MAX = 4 * 1024;

/** What a head led to. PAGE: the target's answer, judged like any; REFUSED: the provider's own. */
type Decision =
  | {
      readonly kind: "PAGE";
      readonly head: ResponseHead;
      readonly url: VettedUrl;
      readonly page: Exclude<HopDecision, { readonly kind: "FOLLOW" }>;
    }
  | { readonly kind: "REFUSED"; readonly failure: UpstreamFailure }
  | { readonly kind: "REFUSED_IN_BODY" | "UNMARKED"; readonly head: ResponseHead; readonly body: RefusedReading };

type Decided = { readonly decision: Decision; readonly verdict: HeadVerdict };

/** One `POST /request` for one page. Only the vetted URL is sent: no header of the caller's is documented, and each would be billed. */
export async function callUnlocker(
  ask: ProviderAsk,
  sink: BodySink,
  { stop, record, usage }: ProviderCallContext,
  parts: UnlockerParts,
): Promise<ProviderCallEnd> {
  const { client } = parts;
  usage.isBillable = () => record.progress.sent;
  let decision = null as Decision | null;
  const result = await client.call({
    method: "POST",
    path: "/request",
    accept: "*/*",
    body: toRequestBody(ask, parts.api.zone),
    callerId: ask.callerId,
    stop,
    progress: record.progress,
    timings: record.timings,
    onHead(head) {
      record.headArrived();
      const decided = decide(head, ask, sink, parts);
      ({ decision } = decided);
      if (decision.kind === "PAGE" && decision.page.kind === "ANSWER") record.reads(decision.page.body);
      return decided.verdict;
    },
  });
  const { head, wireBytes } = record.progress;
  const debug = head === null ? null : readUnlockerDebug(head);
  usage.isBilled = debug?.isBilled ?? null;
  usage.requestId = debug?.requestId ?? null;

  const refused = (failure: UpstreamFailure): ProviderCallEnd => {
    // Only what succeeds is billed, say the documents: a refusal of the provider's own is not, unless it says so.
    usage.isBilled ??= false;
    return { kind: "FAILED", failure, httpStatus: null, refusedBody: null };
  };
  if (result.kind === "STOPPED" && (stop.reason === "ABORTED" || !isFinal(decision))) return { kind: "STOPPED" };
  if (decision === null || (result.kind !== "DONE" && !isFinal(decision))) {
    if (result.kind === "DONE" || result.kind === "STOPPED") {
      throw new Error("an answer without a decision on its head");
    }
    const failure = toCallFailure(result, "PAID_EGRESS", usage.requestId);
    const httpStatus = decision?.kind === "PAGE" ? decision.head.httpStatus : null;
    return { kind: "FAILED", failure, httpStatus, refusedBody: null };
  }
  if (decision.kind === "REFUSED") return refused(decision.failure);
  const wallMs = parts.clock.wallMs();
  if (decision.kind !== "PAGE") {
    const body = decision.body.read()?.bytes ?? null;
    const { head: refusing } = decision;
    if (decision.kind === "REFUSED_IN_BODY") {
      return refused(refusalInBody(refusing, client.redact(body?.toString("utf8") ?? ""), wallMs));
    }
    return refused(body === null ? emptyRefusal(refusing, 200, wallMs) : unmarkedRefusal(refusing, wallMs));
  }
  const { page, url } = decision;
  if (usage.isBilled !== true && ask.purpose === "PAGE" && mayBeSilentRefusal(decision)) {
    return refused(emptyRefusal(decision.head, decision.head.httpStatus, wallMs));
  }
  if (page.kind === "FAIL") return failedPage(decision.head, page);
  const wall = page.screen?.found() ?? null;
  if (wall !== null) return walledPage(decision.head, wall, url);
  return { kind: "ANSWER", response: await toFetchResponse(decision.head, url, NO_REDIRECTS, page.body, wireBytes) };
}

/** Whether the head said all: how the body went changes nothing then, unless the caller ended the attempt. */
function isFinal(decision: Decision | null): boolean {
  return decision !== null && (decision.kind !== "PAGE" || decision.page.kind === "FAIL");
}

function toRequestBody(ask: ProviderAsk, zone: string): string {
  const { country } = ask.egress;
  return JSON.stringify({
    zone,
    url: ask.url.href,
    format: "raw",
    method: "GET",
    // Brings x-brd-debug: the request's id, and whether it is billed.
    debug: true,
    ...(country === null ? {} : { country: country.toLowerCase() }),
  });
}

function decide(head: ResponseHead, ask: ProviderAsk, sink: BodySink, parts: UnlockerParts): Decided {
  const { client, policy, clock } = parts;
  const wallMs = clock.wallMs();
  const answer = readUnlockerAnswer(head, wallMs);
  if (answer.kind === "REFUSED") return { decision: answer, verdict: { do: "SKIP" } };
  if (answer.kind !== "TARGET") {
    const body = planRefusedRead(head, ask.url, REASON_BYTES_MAX, client.limits);
    return { decision: { kind: answer.kind, head, body }, verdict: body.verdict };
  }
  const url = finalUrlOf(answer.head, ask.url, policy);
  if (url === null) {
    const failure = toUpstreamFailure("REDIRECT_REJECTED", { httpStatus: answer.head.httpStatus });
    const page = { kind: "FAIL", failure, refused: null } as const;
    return { decision: { kind: "PAGE", head: answer.head, url: ask.url, page }, verdict: { do: "SKIP" } };
  }
  // A redirect that the provider did not follow is an answer like any: a second URL would be a second request to pay.
  const judged = judgeHead(withoutLocation(answer.head), {
    url,
    seen: new Set(),
    redirectsFollowed: 0,
    isConditional: false,
    request: ask,
    policy,
    limits: client.limits,
    sink,
    wallMs,
    purpose: ask.purpose,
  });
  if (judged.decision.kind === "FOLLOW") throw new Error("a redirect without a Location was to be followed");
  return { decision: { kind: "PAGE", head: answer.head, url, page: judged.decision }, verdict: judged.verdict };
}

function withoutLocation(head: ResponseHead): ResponseHead {
  return { ...head, values: (name) => (name === "location" ? [] : head.values(name)) };
}

/**
 * Where the answer came from: the provider follows redirects itself and need not say where they led. Null: it says so, and
 * it is nothing that may be fetched.
 */
function finalUrlOf(head: ResponseHead, asked: VettedUrl, policy: VetUrlOptions): VettedUrl | null {
  const reported = head.value("x-brd-final-url");
  const vetted = reported === null ? null : vetUrl(reported, policy);
  if (vetted !== null && !vetted.ok) return null;
  const url = vetted?.url ?? asked;
  if (!isRedirectStatus(head.httpStatus)) return url;
  // One that was not followed is an answer like any, unless it leads where nothing may.
  const next = nextUrl(url, head.values("location"), policy);
  return next.kind === "REJECTED" || next.kind === "INVALID" ? null : url;
}

/** A success without a byte, or a 403 without one: an answer that nobody claims is the provider's policy. */
function mayBeSilentRefusal({ head: { httpStatus }, page }: Extract<Decision, { readonly kind: "PAGE" }>): boolean {
  const isSuccess = httpStatus >= 200 && httpStatus <= 299 && httpStatus !== 205;
  if (page.kind === "ANSWER") return page.body?.bytes() === 0 && (isSuccess || httpStatus === 403);
  return httpStatus === 403 && page.refused?.read() === null;
}
