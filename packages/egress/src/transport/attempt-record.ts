import { localFailure, type LocalFailure, type UpstreamFailure } from "@keble-scraper/contract";
import type { VettedUrl } from "../policy/vet-url.ts";
import type { HopWait } from "./admission.ts";
import type { SinkStage } from "./body-stage.ts";
import type { ExchangeProgress } from "./exchange.ts";
import { type FailureKind, toUpstreamFailure } from "./failure-kind.ts";
import {
  type AttemptUsage,
  FREE_USAGE,
  type FetchOutcome,
  type FetchResponse,
  type FetchTimings,
  type RefusedBody,
} from "./fetch-outcome.ts";
import type { ResponseHead } from "./response-head.ts";
import { hostKeyOf } from "./host-key.ts";
import type { HopTimings } from "./hop-timings.ts";
import type { SocketMeter } from "./socket-meter.ts";
import type { Stop } from "./stop.ts";

/** What is known of a running attempt, and the outcomes that can be made of it at any moment. */
export type AttemptRecord = {
  readonly timings: HopTimings;
  readonly progress: ExchangeProgress;
  readonly redirects: FetchResponse["redirects"];
  readonly redirectHeaders: FetchResponse["redirectHeaders"];
  /** The hop to `url` answered with a redirect, which is followed. */
  redirected(url: VettedUrl, head: ResponseHead): void;
  /** A hop to `url` begins: no head of it is known yet. */
  beginHop(url: VettedUrl): void;
  /** A final head came. */
  headArrived(): void;
  /** An acceptable body is being read through `body`. */
  reads(body: SinkStage | null): void;
  succeed(response: FetchResponse): FetchOutcome;
  fail(failure: UpstreamFailure | LocalFailure, refusedBody?: RefusedBody | null): FetchOutcome;
  failAs(kind: FailureKind, nativeCode: string | null): FetchOutcome;
  /** The policy refused where a hop leads: the caller's own mistake at the first one, the site's behind a redirect. */
  refuseTarget(): FetchOutcome;
  /** The caller ended it, by its signal (no wait) or by its admission. */
  giveBack(wait: HopWait | null): FetchOutcome;
  /** The stop came: its own outcome. */
  stopped(): FetchOutcome;
};

/** The record of an attempt that starts now. */
export function createAttemptRecord(options: {
  readonly url: VettedUrl;
  readonly stop: Stop;
  readonly meter: SocketMeter | null;
  readonly monotonicMs: () => number;
}): AttemptRecord {
  const { stop, meter, monotonicMs } = options;
  const startedAt = monotonicMs();
  const timings: HopTimings = { dnsMs: null, connectMs: null };
  const progress: ExchangeProgress = { sent: false, head: null, wireBytes: 0 };
  const redirects: FetchResponse["redirects"][number][] = [];
  const redirectHeaders: FetchResponse["redirectHeaders"][number][] = [];
  let ttfbMs: number | null = null;
  let body: SinkStage | null = null;
  let { url } = options;

  const evidence = (): {
    readonly timings: FetchTimings;
    readonly sent: boolean;
    readonly hostKey: string;
    readonly usage: AttemptUsage;
  } => ({
    timings: {
      dnsMs: toWholeMs(timings.dnsMs),
      connectMs: toWholeMs(timings.connectMs),
      ttfbMs: toWholeMs(ttfbMs),
      totalMs: Math.round(monotonicMs() - startedAt),
    },
    sent: progress.sent,
    hostKey: hostKeyOf(url),
    usage: meter === null ? FREE_USAGE : { ...FREE_USAGE, socketBytes: meter.bytes() },
  });
  const unsuccessful = () => ({
    ok: false as const,
    ...evidence(),
    httpStatus: progress.head?.httpStatus ?? redirects.at(-1)?.httpStatus ?? null,
    bodyBytes: body?.bytes() ?? 0,
    wireBytes: progress.wireBytes,
  });
  const record: AttemptRecord = {
    timings,
    progress,
    redirects,
    redirectHeaders,
    redirected(from, { httpStatus, headers }) {
      redirects.push({ url: from.href, httpStatus });
      redirectHeaders.push(headers);
    },
    beginHop(next) {
      url = next;
      progress.head = null;
      progress.wireBytes = 0;
    },
    headArrived() {
      ttfbMs = monotonicMs() - startedAt;
    },
    reads(stage) {
      body = stage;
    },
    succeed: (response) => ({ ok: true, ...evidence(), response }),
    fail: (failure, refusedBody = null) => ({ ...unsuccessful(), aborted: false, failure, refusedBody }),
    failAs: (kind, nativeCode) =>
      record.fail(toUpstreamFailure(kind, { httpStatus: progress.head?.httpStatus ?? null, nativeCode })),
    refuseTarget: () =>
      redirects.length === 0 ? record.fail(localFailure("TARGET_FORBIDDEN")) : record.failAs("REDIRECT_REJECTED", null),
    giveBack: (wait) => ({ ...unsuccessful(), aborted: true, failure: null, wait }),
    stopped() {
      if (stop.reason === "DEADLINE") return record.fail(localFailure("DEADLINE_EXCEEDED"));
      if (stop.reason !== "ATTEMPT_LIMIT") return record.giveBack(null);
      return record.failAs(progress.head === null ? "ATTEMPT_TIMEOUT_IN_HEAD" : "ATTEMPT_TIMEOUT_IN_BODY", null);
    },
  };
  return record;
}

function toWholeMs(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms);
}
