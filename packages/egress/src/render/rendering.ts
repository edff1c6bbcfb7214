import { upstreamFailure } from "@keble-scraper/contract";
import type { VetUrlOptions } from "../policy/vet-url.ts";
import type { RobotsGate } from "../robots/robots-gate.ts";
import type { AdmitHop } from "../transport/admission.ts";
import type { AttemptRecord } from "../transport/attempt-record.ts";
import type { Clock } from "../transport/clock.ts";
import type { EgressLimits } from "../transport/egress-limits.ts";
import type { FetchOutcome } from "../transport/fetch-outcome.ts";
import type { FetchRequest } from "../transport/fetch-request.ts";
import { type Stop, type Stopped, untilStop } from "../transport/stop.ts";
import type { BrowserPool } from "./browser-pool.ts";
import { classifyNetError } from "./classify-net-error.ts";
import type { ForwardProxy } from "./forward-proxy.ts";
import type { WaitUntil } from "./page-watch.ts";
import type { ProxyJob } from "./proxy-job.ts";
import type { RenderPage } from "./render-page.ts";

/** One attempt as its steps see it. `race` waits for work, or for what ends the attempt first; a crash rejects. */
export type Rendering = {
  readonly request: FetchRequest;
  readonly parts: RenderParts;
  readonly record: AttemptRecord;
  readonly page: RenderPage;
  readonly job: ProxyJob;
  readonly race: <T>(work: Promise<T>) => Promise<T | Ended>;
  readonly ended: (why: Ended) => FetchOutcome;
  /** Until the attempt is stopped. */
  readonly remainingMs: () => number;
};

/** What a render is made of. */
export type RenderParts = {
  readonly pool: BrowserPool;
  readonly proxy: ForwardProxy;
  readonly policy: VetUrlOptions;
  readonly limits: EgressLimits;
  readonly userAgent: string;
  readonly clock: Clock;
  readonly waitUntil: WaitUntil;
  readonly settleTimeoutMs: number;
  /** Asked about every URL of a chain; null: robots.txt has no say. */
  readonly robots: RobotsGate | null;
};

/** How an attempt ends and who lets its navigations go. */
export type RenderControl = { readonly stop: Stop; readonly admit: AdmitHop };

/** What ends an attempt from outside its own steps. */
export const TOO_LARGE = Symbol("too large");
export type Ended = Stopped | typeof TOO_LARGE;

/** Ties an attempt's steps to what may end it: its stop, its budget, a crash. */
export function createRendering(
  made: Pick<Rendering, "request" | "parts" | "record" | "page" | "job"> & {
    readonly stop: Stop;
    readonly startedAt: number;
  },
): Rendering {
  const { record, page, job, stop } = made;
  const tooLarge = new Promise<typeof TOO_LARGE>((resolve) => {
    const onExceeded = (): void => {
      resolve(TOO_LARGE);
    };
    job.onExceeded(onExceeded);
    page.watch.onTooLarge(onExceeded);
  });
  const ended = Promise.race([tooLarge, page.crashed]);
  ended.catch(() => {});
  const { deadline, attemptLimitMs } = made.request;
  const endsAt = Math.min(deadline, made.startedAt + attemptLimitMs);
  return {
    request: made.request,
    parts: made.parts,
    record,
    page,
    job,
    remainingMs: () => Math.max(0, endsAt - made.parts.clock.monotonicMs()),
    race: (work) => untilStop(stop, Promise.race([work, ended])),
    ended(why) {
      record.progress.wireBytes = job.bytes();
      if (why === TOO_LARGE) return record.failAs("BODY_TOO_LARGE", null);
      record.progress.sent ||= job.bytes() > 0;
      return record.stopped();
    },
  };
}

/** What Chromium itself says about the connection behind the tunnel, or about the body. */
export function failAsNetError(netError: string, { record, job }: Rendering): FetchOutcome {
  if (netError === TARGETS_OWN_407) {
    record.progress.sent = true;
    return record.fail(upstreamFailure("HTTP_CLIENT_ERROR", { httpStatus: 407, nativeCode: netError }));
  }
  const meaning = classifyNetError(netError);
  if (meaning === "RENDER_FAILED") {
    record.progress.sent ||= job.bytes() > 0;
    return record.fail(upstreamFailure("RENDER_FAILED", { nativeCode: netError }));
  }
  record.progress.sent ||= !/^(?:DNS|CONNECT|TLS)_/.test(meaning);
  return record.failAs(meaning, netError);
}

/** A target behind TLS that asks for a proxy's password: Chromium takes that for its proxy's and shows nothing of the answer. */
const TARGETS_OWN_407 = "ERR_UNEXPECTED_PROXY_AUTH";
