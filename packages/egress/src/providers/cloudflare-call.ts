import type { UpstreamFailure } from "@keble-scraper/contract";
import { BLOCK_SAMPLE_BYTES_MAX } from "../block-pages/block-patterns.ts";
import { detectBlockPage } from "../block-pages/detect-block-page.ts";
import { vetUrl, type VettedUrl, type VetUrlOptions } from "../policy/vet-url.ts";
import {
  type BodySink,
  createHeadOfBody,
  createSinkStage,
  EnoughRead,
  type SinkStage,
} from "../transport/body-stage.ts";
import type { HeadVerdict } from "../transport/exchange.ts";
import { toUpstreamFailure } from "../transport/failure-kind.ts";
import { judgeStatus } from "../transport/judge-status.ts";
import { planRead } from "../transport/read-verdict.ts";
import { REFUSED_BYTES_MAX, toRefusedBody } from "../transport/refused-body.ts";
import { readResponseHead, type ResponseHead } from "../transport/response-head.ts";
import { type Stop, STOPPED, untilStop } from "../transport/stop.ts";
import { NO_REDIRECTS, toFetchResponse } from "../transport/to-fetch-response.ts";
import { readMediaType } from "../content/media-type.ts";
import type { Clock } from "../transport/clock.ts";
import { CLOUDFLARE_FAILED, NOT_CLOUDFLARE } from "./cloudflare-codes.ts";
import { cloudflareRequestId, readEnvelope, toCloudflareFailure } from "./cloudflare-failure.ts";
import { createEnvelopeReader, type EnvelopeReader } from "./envelope-reader.ts";
import { CAPTURE_TYPES, toCallPath, toRequestBody, type WaitUntil } from "./cloudflare-request.ts";
import type { CloudflareApi } from "./probe-cloudflare.ts";
import type { ProviderClient } from "./provider-client.ts";
import { NO_EVIDENCE, type ProviderRow, toCallFailure, toProviderFailure } from "./provider-failure.ts";
import type { ProviderAsk, ProviderCallContext, ProviderCallEnd } from "./provider-transport.ts";
import { refusedPage, walledPage } from "./provider-page.ts";
import { readThrough } from "./read-through.ts";

/** What a call is made with. */
export type CloudflareParts = {
  readonly api: CloudflareApi;
  readonly client: ProviderClient;
  readonly policy: VetUrlOptions;
  readonly clock: Clock;
  readonly userAgent: string;
  readonly waitUntil: WaitUntil;
};

/** JSON writes some characters of a page six times as long. */
const JSON_GROWTH = 6;
const ENVELOPE_BYTES_MAX = 64 * 1024;

type Decision =
  | { readonly kind: "ENVELOPE"; readonly reader: EnvelopeReader }
  | { readonly kind: "BYTES"; readonly body: SinkStage | null }
  | { readonly kind: "REFUSED"; readonly failure: UpstreamFailure };

/** One call of the endpoint that yields the capture, for one page. */
export async function callCloudflare(
  ask: ProviderAsk,
  sink: BodySink,
  context: ProviderCallContext,
  parts: CloudflareParts,
): Promise<ProviderCallEnd> {
  const { client, clock } = parts;
  const { stop, record, usage } = context;
  const startedAt = clock.monotonicMs();
  // Without an answer nobody says how long the browser ran: no longer than we waited, as far as we know.
  usage.browserMs = () => (record.progress.sent ? clock.monotonicMs() - startedAt : 0);
  let decision = null as Decision | null;
  const result = await client.call({
    method: "POST",
    path: toCallPath(parts.api.accountId, ask.capture),
    accept: "*/*",
    body: toRequestBody(ask, { ...parts, leftMs: context.endsAt - startedAt }),
    callerId: ask.callerId,
    stop,
    progress: record.progress,
    timings: record.timings,
    onHead(head) {
      record.headArrived();
      const decided = decide(head, ask, sink, parts);
      ({ decision } = decided);
      if (decision.kind === "BYTES") record.reads(decision.body);
      return decided.verdict;
    },
  });
  const { head, wireBytes } = record.progress;
  usage.requestId = head === null ? null : cloudflareRequestId(head);
  const browserMs = head === null ? usage.browserMs() : readBrowserMs(head);
  usage.browserMs = () => browserMs;

  if (result.kind === "STOPPED") return { kind: "STOPPED" };
  if (decision?.kind === "REFUSED") return fail(decision.failure);
  // Whether its body came whole or not, a status of its own is the API's answer.
  const isRefusal = decision?.kind === "ENVELOPE" && head !== null && !isSuccess(head);
  if (result.kind !== "DONE" && !isRefusal) return fail(toCallFailure(result, "BROWSER_PROVIDER", usage.requestId));
  if (decision === null || head === null) throw new Error("a response ended without a decision about its head");
  if (decision.kind === "ENVELOPE") return readAnswer(head, decision.reader, ask, sink, context, parts);
  if (decision.body === null || decision.body.bytes() === 0) {
    return fail(oddAnswer(head, CLOUDFLARE_FAILED, "EMPTY_ANSWER"));
  }
  const page = toPageHead(200, ask.capture);
  return { kind: "ANSWER", response: await toFetchResponse(page, ask.url, NO_REDIRECTS, decision.body, wireBytes) };
}

function decide(
  head: ResponseHead,
  ask: ProviderAsk,
  sink: BodySink,
  { client }: CloudflareParts,
): { readonly decision: Decision; readonly verdict: HeadVerdict } {
  const { limits } = client;
  const type = readMediaType(head.value("content-type"))?.essence ?? null;
  const isAnswer = isSuccess(head);
  if (isAnswer && ask.capture !== "DOM" && type !== null && CAPTURE_TYPES[ask.capture] === type) {
    const { verdict, body } = planRead(head, sink, ask.maxBodyBytes, limits);
    return { decision: { kind: "BYTES", body }, verdict };
  }
  if (isAnswer && type !== "application/json") {
    const failure = oddAnswer(head, NOT_CLOUDFLARE, "NOT_JSON");
    return { decision: { kind: "REFUSED", failure }, verdict: { do: "SKIP" } };
  }
  const reader = createEnvelopeReader(isAnswer ? ask.maxBodyBytes : ENVELOPE_BYTES_MAX);
  const wireBytesMax = ENVELOPE_BYTES_MAX + (isAnswer ? JSON_GROWTH * ask.maxBodyBytes : 0);
  return { decision: { kind: "ENVELOPE", reader }, verdict: readThrough(head, reader, wireBytesMax, limits) };
}

/** An envelope was read: its page, its errors, or neither. */
async function readAnswer(
  head: ResponseHead,
  reader: EnvelopeReader,
  ask: ProviderAsk,
  sink: BodySink,
  { stop, record }: ProviderCallContext,
  { client, clock, policy }: CloudflareParts,
): Promise<ProviderCallEnd> {
  const { wireBytes } = record.progress;
  const isAnswer = isSuccess(head);
  if (isAnswer && wireBytes === 0) return fail(oddAnswer(head, CLOUDFLARE_FAILED, "EMPTY_ANSWER"));
  const envelope = readEnvelope(client.redact(reader.skeleton()));
  const chunks = reader.result();
  if (!isAnswer || envelope?.isSuccess !== true) {
    if (isAnswer && (envelope === null || envelope.errors.length === 0)) {
      return fail(oddAnswer(head, NOT_CLOUDFLARE, envelope === null ? "NOT_JSON" : "NO_REASON"));
    }
    return fail(toCloudflareFailure(head, envelope, clock.wallMs()), envelope?.targetStatus ?? null);
  }
  if (chunks === null || ask.capture !== "DOM") return fail(oddAnswer(head, NOT_CLOUDFLARE, "NO_RESULT"));

  const page = toPageHead(envelope.targetStatus ?? 200, ask.capture);
  const { httpStatus } = page;
  const url = envelope.finalUrl === null ? ask.url : readFinalUrl(envelope.finalUrl, policy);
  if (url === null) return fail(toUpstreamFailure("REDIRECT_REJECTED", { httpStatus }), httpStatus);
  const failure = judgeStatus(page, { accept: ask.accept, isConditional: false, wallMs: clock.wallMs() });
  const start = createHeadOfBody(failure === null ? BLOCK_SAMPLE_BYTES_MAX : REFUSED_BYTES_MAX);
  for (const chunk of chunks) start.add(chunk);
  const bytes = start.read();
  if (failure !== null) {
    const isEvidence = bytes.length > 0 && ask.purpose === "PAGE";
    const refused = isEvidence ? toRefusedBody(bytes, { httpStatus, contentType: CAPTURE_TYPES.DOM }, url) : null;
    return refusedPage(page, failure, refused);
  }
  const wall = ask.purpose === "PAGE" ? detectBlockPage({ httpStatus, headers: page.headers, sample: bytes }) : null;
  if (wall !== null) return walledPage(page, { page: wall, bytes }, url);
  const body = createSinkStage(sink, ask.maxBodyBytes);
  record.reads(body);
  if ((await writeAll(chunks, body, stop)) === STOPPED) return { kind: "STOPPED" };
  return { kind: "ANSWER", response: await toFetchResponse(page, url, NO_REDIRECTS, body, wireBytes) };
}

function fail(failure: UpstreamFailure, httpStatus: number | null = null): ProviderCallEnd {
  return { kind: "FAILED", failure, httpStatus, refusedBody: null };
}

function isSuccess({ httpStatus }: ResponseHead): boolean {
  return httpStatus >= 200 && httpStatus <= 299;
}

/** Hands a page to its stage, at the stage's pace. */
async function writeAll(chunks: readonly Buffer[], body: SinkStage, stop: Stop): Promise<typeof STOPPED | "DONE"> {
  try {
    for (const chunk of chunks) {
      if (stop.reason !== null) return STOPPED;
      const taken = body.write(chunk);
      if (taken !== undefined && (await untilStop(stop, taken)) === STOPPED) return STOPPED;
    }
  } catch (error) {
    if (!(error instanceof EnoughRead)) throw error;
  }
  return "DONE";
}

/** An answer that the documents do not know. */
function oddAnswer(head: ResponseHead, row: ProviderRow, nativeCode: string): UpstreamFailure {
  const requestId = cloudflareRequestId(head);
  return toProviderFailure(row, { ...NO_EVIDENCE, nativeCode, requestId, httpStatus: head.httpStatus });
}

/** What the provider tells of the page's own head: its status. What was captured says its type itself. */
function toPageHead(httpStatus: number, capture: ProviderAsk["capture"]): ResponseHead {
  return readResponseHead(httpStatus, ["content-type", CAPTURE_TYPES[capture]], "GET");
}

function readFinalUrl(text: string, policy: VetUrlOptions): VettedUrl | null {
  const vetted = vetUrl(text, policy);
  return vetted.ok ? vetted.url : null;
}

/** Browser time in milliseconds, as the provider counts it; 0 when it says nothing. */
function readBrowserMs(head: ResponseHead): number {
  const text = head.value("x-browser-ms-used")?.trim() ?? "";
  return /^\d{1,9}(?:\.\d{1,9})?$/u.test(text) ? Number(text) : 0;
}
