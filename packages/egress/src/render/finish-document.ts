import { type UpstreamFailure, upstreamFailure } from "@keble-scraper/contract";
import { blockScreen, detectBlockPage } from "../block-pages/detect-block-page.ts";
import type { VettedUrl } from "../policy/vet-url.ts";
import type { BodySink } from "../transport/body-stage.ts";
import type { FetchOutcome, FetchResponse } from "../transport/fetch-outcome.ts";
import { toBlocked } from "../transport/judge-answer.ts";
import { toRefusedBody } from "../transport/refused-body.ts";
import type { ResponseHead } from "../transport/response-head.ts";
import { STOPPED } from "../transport/stop.ts";
import { type Captured, captureDom, capturePage, type CaptureSource } from "./capture-page.ts";
import type { DocumentVerdict } from "./judge-document.ts";
import type { NavigationEnd } from "./navigation-gate.ts";
import { failAsNetError, type Rendering, TOO_LARGE } from "./rendering.ts";

/** An acceptable document that was navigated to. */
export type ShownDocument = {
  readonly end: NavigationEnd;
  readonly head: ResponseHead;
  readonly verdict: DocumentVerdict;
};

/** A sink gets an artifact in pieces of this size, at its own pace. */
const WRITE_BYTES = 64 * 1024;

/** LEFT: before it was loaded, the document asked for another one in its place. */
export type Finished =
  | { readonly kind: "DONE"; readonly outcome: FetchOutcome }
  | { readonly kind: "LEFT"; readonly url: string };

/** Waits for an acceptable document to be loaded, captures it, and hands the artifact to `sink`. */
export async function finishDocument(
  { end, head, verdict }: ShownDocument,
  url: VettedUrl,
  sink: BodySink,
  rendering: Rendering,
): Promise<Finished> {
  const { record, parts, page, job, race } = rendering;
  job.stopTiming();
  const done = (outcome: FetchOutcome): Finished => ({ kind: "DONE", outcome });
  if (verdict.kind === "EMPTY") return done(record.succeed(toResponse(head, url, rendering, null)));
  if (end.kind === "COMMITTED") {
    const loading = page.watch.loaded({
      loaderId: end.loaderId,
      requestId: end.requestId,
      waitUntil: parts.waitUntil,
      idleTimeoutMs: parts.limits.bodyIdleTimeoutMs,
      settleTimeoutMs: Math.min(parts.settleTimeoutMs, rendering.remainingMs() / 2),
    });
    const loaded = await race(Promise.race([loading, page.gate.departed()]));
    record.progress.wireBytes = job.bytes();
    if (loaded === STOPPED || loaded === TOO_LARGE) return done(rendering.ended(loaded));
    if ("url" in loaded) {
      return loaded.isGet ? { kind: "LEFT", url: loaded.url } : done(record.fail(leftItsPlace(head)));
    }
    if (loaded.kind === "IDLE") return done(record.failAs("BODY_IDLE_TIMEOUT", null));
    if (loaded.kind === "FAILED") return done(failAsNetError(loaded.netError, rendering));
  }
  return done(await captureDocument({ end, head, verdict }, url, sink, rendering));
}

async function captureDocument(
  { end, head }: ShownDocument,
  url: VettedUrl,
  sink: BodySink,
  rendering: Rendering,
): Promise<FetchOutcome> {
  const { record, request, job, race, ended } = rendering;
  const source = await race(toSource(end, url, rendering));
  if (source === STOPPED || source === TOO_LARGE) return ended(source);
  const walled = await race(findWall(source, head));
  if (walled === STOPPED || walled === TOO_LARGE) return ended(walled);
  if (walled !== null) {
    const { httpStatus } = head;
    const body = toRefusedBody(walled.bytes, { httpStatus, contentType: walled.contentType }, url);
    return record.fail(toBlocked(walled.page, httpStatus), body);
  }
  const captured = await race(capturePage(request.capture, source, request.maxBodyBytes));
  record.progress.wireBytes = job.bytes();
  if (captured === STOPPED || captured === TOO_LARGE) return ended(captured);
  if (captured.kind === "TOO_LARGE") return record.failAs("BODY_TOO_LARGE", null);
  if (captured.kind === "ELSEWHERE") return record.fail(leftItsPlace(head));
  if (captured.kind === "NOT_CAPTURED") {
    const { httpStatus } = head;
    return record.fail(upstreamFailure("RENDER_FAILED", { origin: "TARGET", httpStatus, nativeCode: "NOT_CAPTURED" }));
  }
  for (let from = 0; from < captured.bytes.length; from += WRITE_BYTES) {
    const written = await race(Promise.resolve(sink.write(captured.bytes.subarray(from, from + WRITE_BYTES))));
    if (written === STOPPED || written === TOO_LARGE) return ended(written);
  }
  return record.succeed(toResponse(withCookies(head, end, rendering), url, rendering, captured));
}

/** The page went where it cannot be followed: by a form, or to something that came from no server. */
function leftItsPlace({ httpStatus }: ResponseHead): UpstreamFailure {
  return upstreamFailure("RENDER_FAILED", { origin: "TARGET", httpStatus, nativeCode: "LEFT" });
}

/** Where to capture. An error status without a body shows nothing of the target's, so that an empty page stands for it. */
async function toSource(end: NavigationEnd, url: VettedUrl, { page }: Rendering): Promise<CaptureSource> {
  const { session, frameId } = page;
  if (end.kind === "COMMITTED") return { session, frameId, origin: url.origin };
  await session.send("Page.setDocumentContent", { frameId, html: "" });
  return { session, frameId, origin: "null" };
}

/** A wall's page that scripts drew, or that came with a success. It is small: a document that is not, is none. */
async function findWall(source: CaptureSource, { httpStatus, headers }: ResponseHead) {
  const { bytes: bytesMax } = blockScreen(httpStatus);
  const dom = bytesMax === 0 ? null : await captureDom(source, bytesMax);
  if (dom?.kind !== "ARTIFACT") return null;
  const page = detectBlockPage({ httpStatus, headers, sample: dom.bytes });
  return page === null ? null : { page, bytes: dom.bytes, contentType: dom.contentType };
}

/** The browser keeps a response's cookies to itself; only its log of the network shows them. */
function withCookies(head: ResponseHead, end: NavigationEnd, { page }: Rendering): ResponseHead {
  const cookies = end.kind === "COMMITTED" ? page.watch.cookies(end.requestId) : [];
  return cookies.length === 0 ? head : { ...head, headers: { ...head.headers, "set-cookie": cookies } };
}

/** The headers are the document's own; the type is the artifact's, which we made and know. */
function toResponse(
  head: ResponseHead,
  url: VettedUrl,
  { record, job }: Rendering,
  artifact: Extract<Captured, { readonly kind: "ARTIFACT" }> | null,
): FetchResponse {
  const isText = artifact?.contentType.endsWith("; charset=utf-8") === true;
  return {
    httpStatus: head.httpStatus,
    finalUrl: url.href,
    redirects: record.redirects,
    headers: head.headers,
    redirectHeaders: record.redirectHeaders,
    contentType: { declared: artifact?.contentType ?? head.value("content-type"), sniffed: artifact?.essence ?? null },
    charset: { declared: isText ? "utf-8" : null, detected: isText ? "utf-8" : null },
    framing: head.framing,
    bodyBytes: artifact?.bytes.length ?? 0,
    wireBytes: job.bytes(),
    hasBody: artifact !== null,
  };
}
