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
import type { PinnedClient } from "./pinned-client.ts";
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
    return await followChain(request, sink, control, parts, record);
  } finally {
    meter?.end();
  }
}

async function followChain(
  request: FetchRequest,
  sink: BodySink,
  control: AttemptControl,
  parts: AttemptParts,
  record: AttemptRecord,
): Promise<FetchOutcome> {
  const { stop, admit } = control;
  const { policy, limits, meter } = parts;
  const { progress, redirects } = record;
  const seen = new Set<string>();
  let { url, headers } = request;
  for (;;) {
    seen.add(url.href);
    // Before robots.txt is asked: an attempt that ends there has no head of this hop yet.
    record.beginHop(url);
    const asked = await askRobots(url, { gate: parts.robots, stop, admit, meter, egress: request.egress, record });
    if (asked.kind === "END") return asked.outcome;
    if (asked.kind === "STOPPED") return record.stopped();
    const { crawlDelayMs } = asked;
    const admitted = await admit({ url, purpose: "PAGE", isFirst: !progress.sent, crawlDelayMs, stop });
    if (admitted.kind === "STOPPED") return record.stopped();
    if (admitted.kind === "WAIT") return record.giveBack(admitted.wait);
    let decision = null as HopDecision | null;
    const sending = parts.client.request({
      scope: { ...parts.scope, callerId: request.callerId },
      egress: request.egress,
      meter,
      url,
      request: { method: request.method, target: url.target, headers: toRequestHeaders(url, headers, parts.userAgent) },
      stop,
      progress,
      timings: record.timings,
      onHead(head) {
        record.headArrived();
        const judged = judgeHead(head, {
          url,
          seen,
          redirectsFollowed: redirects.length,
          isConditional: isConditional(headers),
          request,
          sink,
          purpose: parts.scope.transport === "ROBOTS" ? "ROBOTS" : "PAGE",
          policy,
          limits,
          wallMs: parts.clock.wallMs(),
        });
        ({ decision } = judged);
        if (decision.kind === "ANSWER") record.reads(decision.body);
        return judged.verdict;
      },
    });
    const result = await sending.finally(admitted.done);
    // What a failed answer is stands in its head; how its body went changes nothing, unless the caller ended the attempt.
    if (decision?.kind === "FAIL" && !(result.kind === "STOPPED" && stop.reason === "ABORTED")) {
      return refuse(record, decision);
    }
    if (result.kind === "STOPPED") return record.stopped();
    // However the exchange took the end of its socket: the meter ended it.
    if (meter?.isExceeded === true) return record.failAs("BODY_TOO_LARGE", null);
    if (result.kind === "REFUSED") return record.refuseTarget();
    if (result.kind === "ROUTE_FAILED") return record.fail(result.failure);
    if (result.kind === "FAILED") return record.failAs(result.failure, result.nativeCode);
    if (decision?.kind !== "ANSWER" && decision?.kind !== "FOLLOW") {
      throw new Error("a response ended without a decision about its head");
    }
    if (decision.kind === "ANSWER") {
      const wall = decision.screen?.found() ?? null;
      if (wall !== null) return block(record, wall, result.head, url);
      return record.succeed(await toFetchResponse(result.head, url, redirects, decision.body, progress.wireBytes));
    }
    redirects.push({ url: url.href, httpStatus: result.head.httpStatus });
    // A connection rests from the next turn of the loop on: the next hop, often to the same host, can take it then.
    if (parts.scope.reuse !== "NEVER") await new Promise(setImmediate);
    // Scheme, host or port changed: nothing of the caller's goes there.
    if (decision.url.origin !== url.origin) headers = {};
    ({ url } = decision);
  }
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
