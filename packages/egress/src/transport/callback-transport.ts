import { type LocalFailure, localFailure, type UpstreamFailure } from "@keble-scraper/contract";
import type { Resolver } from "../dns/resolver.ts";
import { type CallbackPolicy, vetCallbackUrl } from "../policy/vet-callback-url.ts";
import { type BodyStage, createHeadOfBody, EnoughRead, type HeadOfBody } from "./body-stage.ts";
import { type Clock, SYSTEM_CLOCK } from "./clock.ts";
import { DEFAULT_EGRESS_LIMITS, type EgressLimits, responseCeilingBytes } from "./egress-limits.ts";
import type { ExchangeProgress } from "./exchange.ts";
import { toUpstreamFailure } from "./failure-kind.ts";
import { readRetryAfterMs } from "./read-retry-after.ts";
import { createPinnedClient, type PinnedClientOverrides, type PinnedResult } from "./pinned-client.ts";
import { hostHeader } from "./request-headers.ts";
import { createRunningAttempts } from "./running-attempts.ts";
import { createStop, type Stop, TIMER_MS_MAX } from "./stop.ts";

/** One try of a delivery. */
export type CallbackRequest = {
  /** As registered; vetted here, at each send. */
  readonly url: string;
  readonly body: string;
  /** Signature headers and the like; Host, User-Agent and the length are ours. */
  readonly headers: Readonly<Record<string, string>>;
  /** For everything from the name to the end of the answer. */
  readonly timeoutMs: number;
  /** Connections are never shared between callers. */
  readonly callerId: string;
};

/**
 * What came of a try. `ok`: the receiver answered, with whatever status, 3xx included; nothing is followed. `body`: the
 * first 4 KiB as text, for operators' eyes. `retryAfterMs`: null when the answer does not say, readably; Infinity is
 * possible. `aborted`: the caller's signal did it. `sent`: the receiver may have got it.
 */
export type CallbackOutcome =
  | {
      readonly ok: true;
      readonly httpStatus: number;
      readonly retryAfterMs: number | null;
      readonly body: string;
      readonly latencyMs: number;
    }
  | {
      readonly ok: false;
      readonly aborted: false;
      readonly failure: UpstreamFailure | LocalFailure;
      readonly latencyMs: number;
      readonly sent: boolean;
    }
  | {
      readonly ok: false;
      readonly aborted: true;
      readonly failure: null;
      readonly latencyMs: number;
      readonly sent: boolean;
    };

/** Delivers callbacks. Made once per process; owns its connections. */
export type CallbackTransport = {
  /** One POST over a connection to an address vetted for it. Never redirects, never retries. Rejects only with faults. */
  send(request: CallbackRequest, control: { readonly signal: AbortSignal }): Promise<CallbackOutcome>;
  /** Waits for running tries until `deadline` (monotonic milliseconds), then aborts them; closes every connection. */
  close(deadline: number): Promise<void>;
  /** Sockets that are being dialled, in use or at rest. */
  sockets(): number;
};

/** What a callback transport is made of. */
export type CallbackTransportOptions = {
  readonly resolver: Resolver;
  readonly policy: CallbackPolicy;
  readonly limits?: Partial<EgressLimits>;
  readonly userAgent?: string;
  readonly clock?: Clock;
  /** For tests; never from settings. */
  readonly overrides?: PinnedClientOverrides;
};

/** Of an answer's body this much is read, so that a small one leaves its connection usable. */
const READ_BYTES_MAX = 64 * 1024;
const KEPT_BYTES_MAX = 4 * 1024;

/** A callback transport with a pool of its own. */
export function createCallbackTransport(options: CallbackTransportOptions): CallbackTransport {
  const { resolver, policy, clock = SYSTEM_CLOCK, userAgent = "KebleScraper/0.1 (callbacks)" } = options;
  // A try's own timeout covers all of it.
  const whole = { responseTimeoutMs: TIMER_MS_MAX, bodyIdleTimeoutMs: TIMER_MS_MAX };
  const limits: EgressLimits = { ...DEFAULT_EGRESS_LIMITS, ...options.limits, ...whole };
  const client = createPinnedClient({ resolver, policy, limits, overrides: options.overrides });
  const running = createRunningAttempts(client);

  const attempt = async (request: CallbackRequest, stop: Stop): Promise<CallbackOutcome> => {
    const startedAt = clock.monotonicMs();
    const latencyMs = (): number => Math.round(clock.monotonicMs() - startedAt);
    const progress: ExchangeProgress = { sent: false, head: null, wireBytes: 0 };
    const failWith = (failure: UpstreamFailure | LocalFailure): CallbackOutcome => ({
      ok: false,
      aborted: false,
      failure,
      latencyMs: latencyMs(),
      sent: progress.sent,
    });

    const vetted = vetCallbackUrl(request.url, policy);
    if (!vetted.ok) return failWith(localFailure("TARGET_FORBIDDEN"));
    const body = createHeadOfBody(KEPT_BYTES_MAX);
    const result = await client.request({
      scope: { transport: "CALLBACK", route: "DIRECT", callerId: request.callerId },
      url: vetted.url,
      request: {
        method: "POST",
        target: vetted.url.target,
        headers: toFlatHeaders(hostHeader(vetted.url), userAgent, request.headers),
        body: request.body,
      },
      stop,
      progress,
      timings: { dnsMs: null, connectMs: null },
      onHead: () => ({
        do: "READ",
        stage: createDiscardStage(body),
        wireBytesMax: Number.MAX_SAFE_INTEGER,
        ceilingBytes: responseCeilingBytes(limits, READ_BYTES_MAX),
      }),
    });
    const { head } = progress;
    if (head !== null) {
      // The status is the answer; how its body went changes nothing.
      const retryAfterMs = readRetryAfterMs(head, clock.wallMs());
      const text = body.read().toString("utf8");
      return { ok: true, httpStatus: head.httpStatus, retryAfterMs, body: text, latencyMs: latencyMs() };
    }
    return toFailed(result, stop, failWith, { latencyMs: latencyMs(), sent: progress.sent });
  };

  return {
    send(request, control) {
      const nowMs = clock.monotonicMs();
      const stop = createStop({ signal: control.signal, deadline: Infinity, limitMs: request.timeoutMs, nowMs });
      return running.track(stop, attempt(request, stop));
    },
    close: (deadline) => running.close(deadline),
    sockets: () => client.sockets(),
  };
}

function toFailed(
  result: PinnedResult,
  stop: Stop,
  failWith: (failure: UpstreamFailure | LocalFailure) => CallbackOutcome,
  evidence: { readonly latencyMs: number; readonly sent: boolean },
): CallbackOutcome {
  switch (result.kind) {
    case "REFUSED":
      return failWith(localFailure("TARGET_FORBIDDEN"));
    case "FAILED":
      return failWith(toUpstreamFailure(result.failure, { nativeCode: result.nativeCode }));
    case "ROUTE_FAILED":
      return failWith(result.failure);
    case "STOPPED":
      return stop.reason === "ABORTED"
        ? { ok: false, aborted: true, failure: null, ...evidence }
        : failWith(toUpstreamFailure("ATTEMPT_TIMEOUT_IN_HEAD"));
    case "DONE":
      throw new Error("an answer without a head");
  }
}

function createDiscardStage(kept: HeadOfBody): BodyStage {
  let readBytes = 0;
  return {
    write(chunk) {
      kept.add(chunk);
      readBytes += chunk.length;
      if (readBytes > READ_BYTES_MAX) throw new EnoughRead();
    },
    end() {},
    abandon() {},
  };
}

/** Whatever a delivery sets, these stay ours. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
  "host",
  "content-length",
  "transfer-encoding",
  "connection",
  "expect",
]);

function toFlatHeaders(host: string, userAgent: string, delivery: Readonly<Record<string, string>>): string[] {
  const headers = new Map([["user-agent", userAgent]]);
  for (const [name, value] of Object.entries(delivery)) headers.set(name.toLowerCase(), value);
  return ["host", host, ...[...headers].filter(([name]) => !OWN_HEADERS.has(name)).flat()];
}
