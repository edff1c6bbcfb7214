import type { UpstreamFailure } from "@keble-scraper/contract";
import { matchesContentTypes } from "../content/media-type.ts";
import { isRedirectStatus, nextUrl } from "../policy/next-url.ts";
import { vetUrl, type VettedUrl, type VetUrlOptions } from "../policy/vet-url.ts";
import type { BodySink, SinkStage } from "../transport/body-stage.ts";
import type { HeadVerdict } from "../transport/exchange.ts";
import { toUpstreamFailure } from "../transport/failure-kind.ts";
import { judgeStatus } from "../transport/judge-status.ts";
import { planRead } from "../transport/read-verdict.ts";
import type { ResponseHead } from "../transport/response-head.ts";
import { toFetchResponse } from "../transport/to-fetch-response.ts";
import type { UnlockerApi } from "./probe-unlocker.ts";
import type { ProviderClient } from "./provider-client.ts";
import { toCallFailure } from "./provider-failure.ts";
import type { ProviderAsk, ProviderCallContext, ProviderCallEnd } from "./provider-transport.ts";
import { keepBody, type KeptBody, REFUSED_BYTES_MAX, toRefusedBody } from "./refused-body.ts";
import { emptyRefusal, readUnlockerAnswer, readUnlockerDebug, refusalInBody } from "./unlocker-answer.ts";

/** What a call is made with. */
export type UnlockerParts = {
  readonly api: UnlockerApi;
  readonly client: ProviderClient;
  readonly policy: VetUrlOptions;
  readonly clock: { wallMs(): number };
};

/** Refusals of the API's own are a line of text or a small object. */
const REASON_BYTES_MAX = 4 * 1024;

/** What a head led to. FAIL is the target's answer, with its body as evidence; REFUSED the provider's own. */
type Decision =
  | { readonly kind: "ANSWER"; readonly head: ResponseHead; readonly url: VettedUrl; readonly body: SinkStage | null }
  | {
      readonly kind: "FAIL";
      readonly head: ResponseHead;
      readonly url: VettedUrl;
      readonly failure: UpstreamFailure;
      readonly kept: KeptBody | null;
    }
  | { readonly kind: "REFUSED"; readonly failure: UpstreamFailure }
  | { readonly kind: "REFUSED_IN_BODY"; readonly head: ResponseHead; readonly kept: KeptBody };

type Decided = { readonly decision: Decision; readonly verdict: HeadVerdict };

/** One `POST /request` for one page. Only the vetted URL is sent: no header of the caller's is documented, and each would be billed. */
export async function callUnlocker(
  ask: ProviderAsk,
  sink: BodySink,
  { stop, record, usage }: ProviderCallContext,
  parts: UnlockerParts,
): Promise<ProviderCallEnd> {
  const { client } = parts;
  let decision: Decision | null = null;
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
      if (decided.decision.kind === "ANSWER") record.reads(decided.decision.body);
      return decided.verdict;
    },
  });
  const made = decision as Decision | null;
  const { sent, head, wireBytes } = record.progress;
  const debug = head === null ? null : readUnlockerDebug(head);
  usage.isBillable = sent;
  usage.isBilled = debug?.isBilled ?? null;
  usage.requestId = debug?.requestId ?? null;

  const refused = (failure: UpstreamFailure): ProviderCallEnd => {
    // Only what succeeds is billed, say the documents: a refusal of the provider's own is not, unless it says so.
    usage.isBilled ??= false;
    return { kind: "FAILED", failure, httpStatus: null, refusedBody: null };
  };
  if (result.kind === "STOPPED") return { kind: "STOPPED" };
  if (made === null || (made.kind === "ANSWER" && result.kind !== "DONE")) {
    if (result.kind === "DONE") throw new Error("a response ended without a decision about its head");
    const failure = toCallFailure(result, "PAID_EGRESS", usage.requestId);
    return { kind: "FAILED", failure, httpStatus: made?.head.httpStatus ?? null, refusedBody: null };
  }
  if (made.kind === "REFUSED") return refused(made.failure);
  const wallMs = parts.clock.wallMs();
  // Whether its body came whole or not, what a refusal says is its answer.
  if (made.kind === "REFUSED_IN_BODY")
    return refused(refusalInBody(made.head, client.redact(made.kept.read().toString("utf8")), wallMs));
  const { httpStatus } = made.head;
  const isEmpty = made.kind === "ANSWER" ? made.body?.bytes() === 0 : made.kept?.read().length === 0;
  if (isEmpty && usage.isBilled !== true && mayBeSilentRefusal(httpStatus)) {
    return refused(emptyRefusal(made.head, httpStatus, wallMs));
  }
  if (made.kind === "ANSWER") {
    return { kind: "ANSWER", response: await toFetchResponse(made.head, made.url, [], made.body, wireBytes) };
  }
  const refusedBody = made.kept === null ? null : toRefusedBody(made.kept.read(), made.head, made.url.href);
  return { kind: "FAILED", failure: made.failure, httpStatus, refusedBody };
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
  if (answer.kind === "REFUSED_IN_BODY") {
    const kept = keepBody(head, REASON_BYTES_MAX, client.limits);
    return { decision: { kind: "REFUSED_IN_BODY", head, kept }, verdict: kept.verdict };
  }
  const { httpStatus } = answer.head;
  const url = finalUrlOf(answer.head, ask.url, policy);
  const skip = (failure: UpstreamFailure): Decided => ({
    decision: { kind: "FAIL", head: answer.head, url: url ?? ask.url, failure, kept: null },
    verdict: { do: "SKIP" },
  });
  if (url === null) return skip(toUpstreamFailure("REDIRECT_REJECTED", { httpStatus }));
  const failure = judgeStatus(answer.head, { accept: ask.accept, isConditional: false, wallMs });
  if (failure !== null) {
    const kept = keepBody(answer.head, REFUSED_BYTES_MAX, client.limits);
    return { decision: { kind: "FAIL", head: answer.head, url, failure, kept }, verdict: kept.verdict };
  }
  if (ask.contentTypes !== null && !matchesContentTypes(answer.head.value("content-type"), ask.contentTypes)) {
    return skip(toUpstreamFailure("UNWANTED_CONTENT_TYPE", { httpStatus }));
  }
  const { verdict, body } = planRead(answer.head, sink, ask.maxBodyBytes, client.limits);
  return { decision: { kind: "ANSWER", head: answer.head, url, body }, verdict };
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
function mayBeSilentRefusal(httpStatus: number): boolean {
  return httpStatus === 403 || (httpStatus >= 200 && httpStatus <= 299 && httpStatus !== 204 && httpStatus !== 205);
}
