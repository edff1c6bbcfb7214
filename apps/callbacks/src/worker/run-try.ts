import { fullJitter } from "@keble-scraper/concurrency";
import { type Failure, localFailure } from "@keble-scraper/contract";
import type { TryReport } from "@keble-scraper/db/commands/callbacks";
import { type CallbackPolicy, type CallbackTransport, vetCallbackUrl } from "@keble-scraper/egress";
import type { RunControl } from "@keble-scraper/service";
import { v7 as uuidv7 } from "uuid";
import type { SecretBox } from "../secret-box.ts";
import type { ClaimedDelivery } from "./claimed-delivery.ts";
import { judgeAnswer } from "./judge-answer.ts";
import { signTry } from "./sign-try.ts";

/** What a run may use. */
export type TryParts = {
  readonly transport: Pick<CallbackTransport, "send">;
  readonly policy: CallbackPolicy;
  readonly secrets: Pick<SecretBox, "open">;
  readonly retry: { readonly baseMs: number; readonly ceilingMs: number };
  random(): number;
  /** Told of a delivery whose secret this process can't open. */
  onUnopenable(delivery: ClaimedDelivery): void;
};

/** ABANDONED: the lease is not ours any more, so there is nothing to write. */
export type TryOutcome = { readonly kind: "ABANDONED" } | { readonly kind: "REPORTED"; readonly report: TryReport };

/** A wrong key is mended by a deployment, which takes a while; no try is spent on waiting for it. */
const UNOPENABLE_WAIT_MS = 30_000;
/** A delivery's ceiling grows by this factor: 5 s, 25 s, 2 min, 10 min, 52 min, 4 h, 10 h … */
const BACKOFF_FACTOR = 5;

/**
 * Makes one try of a delivery: the stored bytes, signed anew with all live secrets, the timestamp from the database. Knows
 * neither queue nor SQL. Throws only for faults: its lease then expires by itself.
 */
export async function runTry(delivery: ClaimedDelivery, control: RunControl, parts: TryParts): Promise<TryOutcome> {
  const secrets = delivery.secrets.map((sealed) => parts.secrets.open(sealed, delivery.endpointId));
  const opened = secrets.filter((secret) => secret !== null);
  if (opened.length === 0 || opened.length < secrets.length) {
    parts.onUnopenable(delivery);
    return unsent(delivery, UNOPENABLE_WAIT_MS);
  }
  if (!vetCallbackUrl(delivery.url, parts.policy).ok) return forbidden(delivery);
  const body = await delivery.body();
  if (body.kind === "LOST") return { kind: "ABANDONED" };
  if (control.signal.aborted || !control.isTrusted()) return notSent(delivery, control);
  // A database that is coming back is not asked by all at once.
  if (body.kind === "UNAVAILABLE") return unsent(delivery, backoff(delivery, parts));

  const timestamp = Math.floor(delivery.claimedAtMs / 1_000);
  const headers = signTry({ eventId: delivery.eventId, timestamp, body: body.bytes, secrets: opened });
  const { url, timeoutMs, callerId } = delivery;
  const answer = await parts.transport.send({ url, body: body.bytes, headers, timeoutMs, callerId }, control);
  if (answer.ok) {
    const judged = judgeAnswer(answer.httpStatus, answer.retryAfterMs);
    return report(delivery, {
      ...judged,
      httpStatus: answer.httpStatus,
      latencyMs: answer.latencyMs,
      backoffMs: backoff(delivery, parts),
    });
  }
  if (answer.aborted) return answer.sent ? cutShort(delivery, control) : notSent(delivery, control);
  // Whatever it was, the next try may find it mended: a name may lead elsewhere, a certificate be renewed.
  const failure: Failure = { ...answer.failure, disposition: "RETRY" };
  return report(delivery, { outcome: "FAILED", failure, backoffMs: backoff(delivery, parts) });
}

function backoff(delivery: ClaimedDelivery, { retry, random }: TryParts): number {
  return fullJitter({ ...retry, factor: BACKOFF_FACTOR, attempt: delivery.attemptsUsed }, random);
}

/** No retry heals a URL that the deployment's own rule refuses; once the rule is changed, a replay does. */
function forbidden(delivery: ClaimedDelivery): TryOutcome {
  return report(delivery, { outcome: "FAILED", failure: localFailure("TARGET_FORBIDDEN"), next: "FORBIDDEN" });
}

/** Of a try that sent nothing the count goes back, unless the lease went first. */
function notSent(delivery: ClaimedDelivery, control: RunControl): TryOutcome {
  return control.isTrusted() ? unsent(delivery, 0) : { kind: "ABANDONED" };
}

function unsent(delivery: ClaimedDelivery, backoffMs: number): TryOutcome {
  return report(delivery, { outcome: "UNSENT", backoffMs });
}

/** The receiver may have acted on what it got, so the try counts; the next worker makes the next one at once. */
function cutShort(delivery: ClaimedDelivery, control: RunControl): TryOutcome {
  if (!control.isTrusted()) return { kind: "ABANDONED" };
  return report(delivery, { outcome: "UNKNOWN", failure: localFailure("WORKER_LOST") });
}

function report(delivery: ClaimedDelivery, what: Partial<TryReport>): TryOutcome {
  return {
    kind: "REPORTED",
    report: {
      id: delivery.id,
      token: delivery.token,
      tryId: uuidv7(),
      outcome: "FAILED",
      httpStatus: null,
      failure: null,
      latencyMs: null,
      url: delivery.url,
      next: "RETRY",
      backoffMs: 0,
      retryAfterMs: null,
      ...what,
    },
  };
}
