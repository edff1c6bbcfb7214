import type { BodyScreen } from "../block-pages/body-screen.ts";
import type { VettedUrl, VetUrlOptions } from "../policy/vet-url.ts";
import type { RobotsGate } from "../robots/robots-gate.ts";
import type { AdmitHop } from "./admission.ts";
import { askRobots } from "./ask-robots.ts";
import { type AttemptRecord, createAttemptRecord } from "./attempt-record.ts";
import type { BodySink } from "./body-stage.ts";
import type { Clock } from "./clock.ts";
import type { ConnectionScope } from "./connection-pool.ts";
import type { EgressLimits } from "./egress-limits.ts";
import type { FetchOutcome } from "./fetch-outcome.ts";
import type { FetchRequest } from "./fetch-request.ts";
import { judgeRefusedBody, toBlocked } from "./judge-answer.ts";
import { type HopDecision, judgeHead } from "./judge-head.ts";
import type { PinnedClient, PinnedResult } from "./pinned-client.ts";
import { isConditional, toRequestHeaders } from "./request-headers.ts";
import { toRefusedBody } from "./refused-body.ts";
import type { ResponseHead } from "./response-head.ts";
import type { SocketMeter } from "./socket-meter.ts";
import type { Stop } from "./stop.ts";
import { toFetchResponse } from "./to-fetch-response.ts";

/** What an attempt is made of. The same for every route that fetches over connections of its own. */
export type AttemptParts = {
  readonly client: PinnedClient;
  readonly policy: VetUrlOptions;
  readonly limits: EgressLimits;
  readonly userAgent: string;
  readonly clock: Clock;
  readonly scope: Omit<ConnectionScope, "callerId">;
  /** Asked about every URL of a chain; null: robots.txt has no say. */
  readonly robots: RobotsGate | null;
  /** Counts this attempt's sockets where they are paid for; null: usage is free. The attempt ends it. */
  readonly meter: SocketMeter | null;
};

/** How an attempt ends and who lets its requests go. */
export type AttemptControl = { readonly stop: Stop; readonly admit: AdmitHop };

/** Follows a chain from `request.url` to its final response, whose body goes to `sink`. Rejects only with faults. */
export async function fetchAttempt(
  request: FetchRequest,
  sink: BodySink,
  control: AttemptControl,
  parts: AttemptParts,
): Promise<FetchOutcome> {
  const { meter, clock } = parts;
  const { url } = request;
  const record = createAttemptRecord({ url, stop: control.stop, meter, monotonicMs: () => clock.monotonicMs() });
  try {
    return await followChain({ request, sink, control, parts, record, seen: new Set() });
  } finally {
    meter?.end();
  }
}

/** `seen`: URLs of the chain so far. */
type Chain = {
  readonly request: FetchRequest;
  readonly sink: BodySink;
  readonly control: AttemptControl;
  readonly parts: AttemptParts;
  readonly record: AttemptRecord;
  readonly seen: Set<string>;
};

async function followChain(chain: Chain): Promise<FetchOutcome> {
  const { request, control, parts, record, seen } = chain;
  const { stop, admit } = control;
  const { robots: gate, meter } = parts;
  let { url, headers } = request;
  for (;;) {
    seen.add(url.href);
    // Before robots.txt is asked: an attempt that ends there has no head of this hop yet.
    record.beginHop(url);
    const asked = await askRobots(url, { gate, stop, admit, meter, egress: request.egress, record });
    if (asked.kind === "END") return asked.outcome;
    if (asked.kind === "STOPPED") return record.stopped();
    const { crawlDelayMs } = asked;
    const admitted = await admit({ url, purpose: "PAGE", isFirst: !record.progress.sent, crawlDelayMs, stop });
    if (admitted.kind === "STOPPED") return record.stopped();
    if (admitted.kind === "WAIT") return record.giveBack(admitted.wait);
    const sent = await sendHop(chain, url, headers).finally(admitted.done);
    const next = await concludeHop(chain, url, sent);
    if (next.kind === "END") return next.outcome;
    record.redirected(url, next.head);
    // A connection rests from the next turn of the loop on: the next hop, often to the same host, can take it then.
    if (parts.scope.reuse !== "NEVER") await new Promise(setImmediate);
    // Scheme, host or port changed: nothing of the caller's goes there.
    if (next.url.origin !== url.origin) headers = {};
    ({ url } = next);
  }
}

/** `decision`: null when no final head came. */
type SentHop = { readonly result: PinnedResult; readonly decision: HopDecision | null };

/** Sends one admitted hop, and reads what its head makes worth reading. */
async function sendHop(chain: Chain, url: VettedUrl, headers: FetchRequest["headers"]): Promise<SentHop> {
  const { request, sink, control, parts, record, seen } = chain;
  let decision: HopDecision | null = null;
  const result = await parts.client.request({
    scope: { ...parts.scope, callerId: request.callerId },
    egress: request.egress,
    meter: parts.meter,
    url,
    request: { method: request.method, target: url.target, headers: toRequestHeaders(url, headers, parts.userAgent) },
    stop: control.stop,
    progress: record.progress,
    timings: record.timings,
    onHead(head) {
      record.headArrived();
      const judged = judgeHead(head, {
        url,
        seen,
        redirectsFollowed: record.redirects.length,
        isConditional: isConditional(headers),
        request,
        sink,
        purpose: parts.scope.transport === "ROBOTS" ? "ROBOTS" : "PAGE",
        policy: parts.policy,
        limits: parts.limits,
        wallMs: parts.clock.wallMs(),
      });
      ({ decision } = judged);
      if (decision.kind === "ANSWER") record.reads(decision.body);
      return judged.verdict;
    },
  });
  return { result, decision };
}

type NextHop =
  | { readonly kind: "END"; readonly outcome: FetchOutcome }
  | { readonly kind: "FOLLOW"; readonly url: VettedUrl; readonly head: ResponseHead };

/** What a hop that was sent leads to. */
async function concludeHop(
  { control: { stop }, parts: { meter }, record }: Chain,
  url: VettedUrl,
  { result, decision }: SentHop,
): Promise<NextHop> {
  const end = (outcome: FetchOutcome): NextHop => ({ kind: "END", outcome });
  // What a failed answer is stands in its head; how its body went changes nothing, unless the caller ended the attempt.
  if (decision?.kind === "FAIL" && !(result.kind === "STOPPED" && stop.reason === "ABORTED")) {
    return end(refuse(record, decision));
  }
  if (result.kind === "STOPPED") return end(record.stopped());
  // However the exchange took the end of its socket: the meter ended it.
  if (meter?.isExceeded === true) return end(record.failAs("BODY_TOO_LARGE", null));
  if (result.kind === "REFUSED") return end(record.refuseTarget());
  if (result.kind === "ROUTE_FAILED") return end(record.fail(result.failure));
  if (result.kind === "FAILED") return end(record.failAs(result.failure, result.nativeCode));
  const { head } = result;
  if (decision?.kind === "FOLLOW") return { kind: "FOLLOW", url: decision.url, head };
  if (decision?.kind !== "ANSWER") throw new Error("a response ended without a decision about its head");
  const wall = decision.screen?.found() ?? null;
  if (wall !== null) return end(block(record, wall, head, url));
  const { progress } = record;
  return end(record.succeed(await toFetchResponse(head, url, record, decision.body, progress.wireBytes)));
}

/** A failed answer, with what was read of its body; a wall's page says so in there. */
function refuse(record: AttemptRecord, decision: Extract<HopDecision, { readonly kind: "FAIL" }>): FetchOutcome {
  const body = decision.refused?.read() ?? null;
  const { head } = record.progress;
  return record.fail(head === null ? decision.failure : judgeRefusedBody(decision.failure, head, body), body);
}

/** An answer that turned out to be a wall's page; none of it went to the sink. */
function block(
  record: AttemptRecord,
  { page, bytes }: NonNullable<ReturnType<BodyScreen["found"]>>,
  head: ResponseHead,
  url: VettedUrl,
): FetchOutcome {
  const { httpStatus } = head;
  const body = toRefusedBody(bytes, { httpStatus, contentType: head.value("content-type") }, url);
  return record.fail(toBlocked(page, httpStatus), body);
}
