import type { LocalFailure, UpstreamFailure } from "@keble-scraper/contract";
import type { RobotsGate } from "../robots/robots-gate.ts";
import type { AdmitHop } from "../transport/admission.ts";
import { askRobots } from "../transport/ask-robots.ts";
import { type AttemptRecord, createAttemptRecord } from "../transport/attempt-record.ts";
import type { BodySink } from "../transport/body-stage.ts";
import type { Clock } from "../transport/clock.ts";
import type { AttemptUsage, FetchOutcome, FetchResponse, RefusedBody } from "../transport/fetch-outcome.ts";
import type { FetchRequest } from "../transport/fetch-request.ts";
import { createRunningAttempts } from "../transport/running-attempts.ts";
import { createSocketMeter, type SocketMeter } from "../transport/socket-meter.ts";
import { createStop, type Stop } from "../transport/stop.ts";
import type { Transport } from "../transport/transport.ts";
import type { ProviderClient } from "./provider-client.ts";
import { type ProviderOrigin, toTimeout } from "./provider-failure.ts";
import { createProviderRobots } from "./provider-robots.ts";
import { type CallUsage, createUsageRecord, type UsageRecord } from "./usage-record.ts";

/** How a call for one page ended. `httpStatus`: the target's own, null when none of its was reported. */
export type ProviderCallEnd =
  | { readonly kind: "ANSWER"; readonly response: FetchResponse }
  | {
      readonly kind: "FAILED";
      readonly failure: UpstreamFailure | LocalFailure;
      readonly httpStatus: number | null;
      readonly refusedBody: RefusedBody | null;
    }
  | { readonly kind: "STOPPED" };

/** What a call runs in. */
export type ProviderCallContext = {
  readonly stop: Stop;
  /** When the stop comes by itself, in the clock's monotonic milliseconds. */
  readonly endsAt: number;
  readonly record: AttemptRecord;
  readonly usage: CallUsage;
};

/** What one call asks for. ROBOTS: a refused robots.txt has a meaning of its own, whoever refuses it. */
export type ProviderAsk = { readonly purpose: "PAGE" | "ROBOTS" } & Pick<
  FetchRequest,
  "url" | "headers" | "accept" | "contentTypes" | "maxBodyBytes" | "callerId" | "capture" | "egress"
>;

/** One provider's protocol. */
export type ProviderProtocol = {
  readonly origin: ProviderOrigin;
  /** Why a request can't be made of this provider at all; null: it can. Asked before anything is sent. */
  refuse(request: FetchRequest): UpstreamFailure | LocalFailure | null;
  /** One call of the API for one page, whose acceptable body goes to `sink`. Rejects only with faults. */
  send(ask: ProviderAsk, sink: BodySink, context: ProviderCallContext): Promise<ProviderCallEnd>;
  /** A robots.txt as the site sent it, from how the provider delivers one. */
  unwrapRobots(body: Buffer): Buffer;
};

/** What a provider transport is made of. */
export type ProviderTransportParts = {
  readonly protocol: ProviderProtocol;
  readonly client: ProviderClient;
  readonly clock: Clock;
};

/**
 * A transport that sends one admitted call per attempt to a provider's API, and one more for a robots.txt that is not
 * known yet. It follows nothing itself: the provider does.
 */
export function createProviderTransport({ protocol, client, clock }: ProviderTransportParts): Transport {
  const running = createRunningAttempts(client.pinned);
  const payers = new WeakMap<SocketMeter, UsageRecord>();
  const robots = createProviderRobots({ protocol, client, clock, running, payers });

  return {
    fetch(request, sink, control) {
      const nowMs = clock.monotonicMs();
      const { deadline, attemptLimitMs } = request;
      const stop = createStop({ signal: control.signal, deadline, limitMs: attemptLimitMs, nowMs });
      const endsAt = Math.min(deadline, nowMs + attemptLimitMs);
      const gate = request.robots === "RESPECT" ? robots : null;
      const parts = { protocol, gate, payers, monotonicMs: clock.monotonicMs };
      return running.track(stop, attempt(request, sink, { stop, endsAt, admit: control.admit }, parts));
    },
    close: (deadline) => running.close(deadline),
    sockets: () => client.pinned.sockets(),
  };
}

async function attempt(
  request: FetchRequest,
  sink: BodySink,
  { stop, endsAt, admit }: { readonly stop: Stop; readonly endsAt: number; readonly admit: AdmitHop },
  parts: {
    readonly protocol: ProviderProtocol;
    readonly gate: RobotsGate | null;
    readonly payers: WeakMap<SocketMeter, UsageRecord>;
    readonly monotonicMs: () => number;
  },
): Promise<FetchOutcome> {
  const { protocol, gate, payers, monotonicMs } = parts;
  const { url } = request;
  const record = createAttemptRecord({ url, stop, meter: null, monotonicMs });
  const used = createUsageRecord();
  const end = (outcome: FetchOutcome, httpStatus: number | null = null): FetchOutcome =>
    withUsage(outcome, used.total(), httpStatus);
  const stopped = (): FetchOutcome => end(stoppedOutcome(record, stop, protocol.origin, used.total()));

  const refusal = protocol.refuse(request);
  if (refusal !== null) return end(record.fail(refusal));
  // It counts nothing: the gate wants to know who pays for the file's fetch.
  const payer = createSocketMeter(Infinity);
  payers.set(payer, used);
  const asked = await askRobots(url, { gate, stop, admit, meter: payer, egress: request.egress, record });
  if (asked.kind === "STOPPED") return stopped();
  if (asked.kind === "END") return end(asked.outcome);
  const { crawlDelayMs } = asked;
  const admitted = await admit({ url, purpose: "PAGE", isFirst: true, crawlDelayMs, stop });
  if (admitted.kind === "STOPPED") return stopped();
  if (admitted.kind === "WAIT") return end(record.giveBack(admitted.wait));
  const result = await protocol
    .send({ ...request, purpose: "PAGE" }, sink, { stop, endsAt, record, usage: used.begin() })
    .finally(admitted.done);
  if (result.kind === "STOPPED") return stopped();
  if (result.kind === "ANSWER") return end(record.succeed(result.response));
  return end(record.fail(result.failure, result.refusedBody), result.httpStatus);
}

/** The record knows no provider: whose limit ran out is said here. */
function stoppedOutcome(
  record: AttemptRecord,
  stop: Stop,
  origin: ProviderOrigin,
  { providerRequestId }: AttemptUsage,
): FetchOutcome {
  if (stop.reason !== "ATTEMPT_LIMIT") return record.stopped();
  const phase = record.progress.head === null ? "HEAD" : "BODY";
  return record.fail(toTimeout(phase, origin, providerRequestId));
}

/** The head in the record is the API's: its status says nothing of the target's. */
function withUsage(outcome: FetchOutcome, usage: AttemptUsage, httpStatus: number | null): FetchOutcome {
  return outcome.ok ? { ...outcome, usage } : { ...outcome, usage, httpStatus };
}
