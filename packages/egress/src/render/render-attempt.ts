import { localFailure } from "@keble-scraper/contract";
import { nextUrl } from "../policy/next-url.ts";
import type { VettedUrl } from "../policy/vet-url.ts";
import { askRobots } from "../transport/ask-robots.ts";
import { createAttemptRecord } from "../transport/attempt-record.ts";
import type { BodySink } from "../transport/body-stage.ts";
import { FREE_USAGE, type FetchOutcome } from "../transport/fetch-outcome.ts";
import type { FetchRequest } from "../transport/fetch-request.ts";
import { judgeRefusedBody } from "../transport/judge-answer.ts";
import { toRefusedBody } from "../transport/refused-body.ts";
import { isConditional } from "../transport/request-headers.ts";
import type { ResponseHead } from "../transport/response-head.ts";
import { STOPPED, untilStop } from "../transport/stop.ts";
import { finishDocument } from "./finish-document.ts";
import { type DocumentVerdict, judgeDocument, notAPage } from "./judge-document.ts";
import { toNavigationHeaders } from "./navigation-headers.ts";
import type { NavigationEnd } from "./navigation-gate.ts";
import { renderBudgetBytes } from "./render-budget.ts";
import {
  createRendering,
  failAsNetError,
  type RenderControl,
  type Rendering,
  type RenderParts,
  TOO_LARGE,
} from "./rendering.ts";
import { openRenderPage, type RenderPage } from "./render-page.ts";
import { LATE } from "./within.ts";

/** A context that takes longer to close has something in it that does not obey: its browser gets no further job. */
const CLOSE_MS_MAX = 1_000;

/**
 * Renders the page at the end of a chain of redirects into `sink`. Rejects only with faults: among them is a crash of the page
 * or of its browser, after which the attempt is lost and nothing is known of it.
 */
export async function renderAttempt(
  request: FetchRequest,
  sink: BodySink,
  control: RenderControl,
  parts: RenderParts,
): Promise<FetchOutcome> {
  const { stop } = control;
  const { clock } = parts;
  const begunAt = clock.monotonicMs();
  const record = createAttemptRecord({ url: request.url, stop, meter: null, monotonicMs: () => clock.monotonicMs() });
  if (request.method === "HEAD") {
    return record.fail(localFailure("NOT_SUPPORTED", { message: "A page is rendered with GET." }));
  }
  const acquired = parts.pool.acquire();
  const lease = await untilStop(stop, acquired);
  if (lease === STOPPED) {
    // It may still be starting: whenever it is there, it is free again.
    void acquired.then((late) => late.release()).catch(() => {});
    return record.stopped();
  }
  const startedAt = clock.monotonicMs();
  const budgetBytes = renderBudgetBytes(request.maxBodyBytes);
  const job = parts.proxy.openJob(stop, budgetBytes);
  let page: RenderPage | null = null;
  try {
    const opening = openRenderPage(lease.launched, {
      userAgent: callerHeader(request, "user-agent") ?? parts.userAgent,
      credentials: job.credentials,
      decodedBytesMax: budgetBytes,
    });
    const opened = await untilStop(stop, opening);
    if (opened === STOPPED) {
      void opening.then((late) => late.close(CLOSE_MS_MAX)).catch(() => {});
      return record.stopped();
    }
    page = opened;
    const rendering = createRendering({ request, parts, record, page, job, stop, startedAt: begunAt });
    const outcome = await followChain(sink, control, rendering);
    const browserMs = Math.round(clock.monotonicMs() - startedAt);
    return { ...outcome, usage: { ...FREE_USAGE, socketBytes: job.bytes(), browserMs } };
  } finally {
    job.close();
    if (page !== null && !(await page.close(CLOSE_MS_MAX))) lease.retire();
    await lease.release();
  }
}

async function followChain(
  sink: BodySink,
  { stop, admit }: RenderControl,
  rendering: Rendering,
): Promise<FetchOutcome> {
  const { record, request, parts, race } = rendering;
  const seen = new Set<string>();
  let { url, headers } = request;
  for (;;) {
    seen.add(url.href);
    record.beginHop(url);
    const question = { gate: parts.robots, stop, admit, meter: null, egress: request.egress, record };
    const asked = await race(askRobots(url, question));
    if (asked === STOPPED || asked === TOO_LARGE) return rendering.ended(asked);
    if (asked.kind === "STOPPED") return rendering.ended(STOPPED);
    if (asked.kind === "END") return asked.outcome;
    const isFirst = !record.progress.sent;
    const admitted = await admit({ url, purpose: "PAGE", isFirst, crawlDelayMs: asked.crawlDelayMs, stop });
    if (admitted.kind === "STOPPED") return record.stopped();
    if (admitted.kind === "WAIT") return record.giveBack(admitted.wait);
    try {
      const hop = await navigate(url, headers, seen, rendering);
      if (hop.kind === "END") return hop.outcome;
      const next = hop.kind === "FOLLOW" ? hop : await show(hop, url, sink, rendering);
      if (next.kind === "END") return next.outcome;
      record.redirected(url, hop.head);
      // Scheme, host or port changed: nothing of the caller's goes there.
      if (next.url.origin !== url.origin) headers = {};
      ({ url } = next);
    } finally {
      admitted.done();
    }
  }
}

/** What a navigation led to. SHOW: its document is in the page, or it has none to show. */
type Hop =
  | { readonly kind: "END"; readonly outcome: FetchOutcome }
  | { readonly kind: "FOLLOW"; readonly url: VettedUrl; readonly head: ResponseHead }
  | {
      readonly kind: "SHOW";
      readonly end: NavigationEnd;
      readonly head: ResponseHead;
      readonly verdict: DocumentVerdict;
    };

/**
 * A document that leads elsewhere by itself is a hop like a redirect, by the same rules and within the same limit; one that
 * loads its own URL again is not a loop: it may have got a cookie first.
 */
async function show(
  shown: Extract<Hop, { readonly kind: "SHOW" }>,
  url: VettedUrl,
  sink: BodySink,
  rendering: Rendering,
): Promise<Extract<Hop, { readonly kind: "END" }> | { readonly kind: "FOLLOW"; readonly url: VettedUrl }> {
  const { record, parts, page, race } = rendering;
  const end = (outcome: FetchOutcome) => ({ kind: "END", outcome }) as const;
  const finished = await finishDocument(shown, url, sink, rendering);
  if (finished.kind === "DONE") return end(finished.outcome);
  const next = nextUrl(url, [finished.url], parts.policy);
  if (next.kind !== "FOLLOW") {
    return end(record.failAs(next.kind === "REJECTED" ? "REDIRECT_REJECTED" : "REDIRECT_INVALID", null));
  }
  if (record.redirects.length >= parts.limits.redirectsMax) return end(record.failAs("REDIRECT_LIMIT", null));
  const cleared = await race(page.gate.clear());
  return cleared === STOPPED || cleared === TOO_LARGE ? end(rendering.ended(cleared)) : next;
}

async function navigate(
  url: VettedUrl,
  headers: FetchRequest["headers"],
  seen: ReadonlySet<string>,
  rendering: Rendering,
): Promise<Hop> {
  const { request, parts, record, page, job, race } = rendering;
  let head: ResponseHead | null = null;
  let verdict: DocumentVerdict | null = null;
  job.watch(url);
  const navigating = page.gate.navigate(url, toNavigationHeaders(headers), (arrived) => {
    // A status of our own proxy's is none of the target's.
    if (job.trouble() !== null) return "SKIP";
    head = arrived;
    record.progress.head = arrived;
    record.progress.sent = true;
    record.headArrived();
    verdict = judgeDocument(arrived, {
      url,
      seen,
      request,
      redirectsFollowed: record.redirects.length,
      isConditional: isConditional(headers),
      policy: parts.policy,
      limits: parts.limits,
      wallMs: parts.clock.wallMs(),
      declaredBytesMax: renderBudgetBytes(request.maxBodyBytes),
    });
    if (verdict.kind === "RENDER") return "RENDER";
    return verdict.kind === "FAIL" && verdict.isEvidence ? "KEEP" : "SKIP";
  });
  const timeoutMs = parts.limits.connectTimeoutMs + parts.limits.responseTimeoutMs;
  const end = await race(untilHead(navigating, () => head !== null, timeoutMs));
  const made = { head: head as ResponseHead | null, verdict: verdict as DocumentVerdict | null };
  record.timings.dnsMs = job.timings.dnsMs;
  record.timings.connectMs = job.timings.connectMs;
  record.progress.wireBytes = job.bytes();
  const finish = (outcome: FetchOutcome): Hop => ({ kind: "END", outcome });
  if (end === STOPPED || end === TOO_LARGE) return finish(rendering.ended(end));
  if (made.head === null || made.verdict === null) return finish(failBeforeHead(end, rendering));
  if (made.verdict.kind === "FOLLOW") return { kind: "FOLLOW", url: made.verdict.url, head: made.head };
  if (made.verdict.kind === "FAIL") {
    const kept = end !== LATE && end.kind === "NOT_SHOWN" ? end.body : null;
    const { httpStatus } = made.head;
    const contentType = made.head.value("content-type");
    const body = kept === null ? null : toRefusedBody(kept, { httpStatus, contentType }, url);
    return finish(record.fail(judgeRefusedBody(made.verdict.failure, made.head, body), body));
  }
  if (end === LATE) throw new Error("a head came and was late all the same");
  if (end.kind === "DOWNLOAD") return finish(record.fail(notAPage(made.head.httpStatus)));
  if (end.kind === "FAILED") return finish(failAsNetError(end.netError, rendering));
  return { kind: "SHOW", end, head: made.head, verdict: made.verdict };
}

/** The navigation's end, or LATE when not even a head has come in time. */
function untilHead<T>(navigating: Promise<T>, hasHead: () => boolean, timeoutMs: number): Promise<T | typeof LATE> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      if (!hasHead()) resolve(LATE);
    }, timeoutMs);
    navigating
      .finally(() => {
        clearTimeout(timer);
      })
      .then(resolve, reject);
  });
}

function failBeforeHead(end: NavigationEnd | typeof LATE, rendering: Rendering): FetchOutcome {
  const { record, job } = rendering;
  const trouble = job.trouble();
  if (trouble?.kind === "REFUSED") return record.refuseTarget();
  if (trouble !== null) {
    record.progress.sent ||= !/^(?:DNS|CONNECT)_/.test(trouble.kind);
    return record.failAs(trouble.kind, trouble.nativeCode);
  }
  if (end === LATE) {
    record.progress.sent = true;
    return record.failAs("HEADERS_TIMEOUT", null);
  }
  return failAsNetError(end.kind === "FAILED" ? end.netError : "ERR_ABORTED", rendering);
}

function callerHeader({ headers }: FetchRequest, name: string): string | undefined {
  return Object.entries(headers).find(([own]) => own.toLowerCase() === name)?.[1];
}
