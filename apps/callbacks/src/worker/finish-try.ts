import type { TryReport, TryVerdict } from "@keble-scraper/db/commands/callbacks";
import type { Logger, RunControl, SettleLane, Signals } from "@keble-scraper/service";
import type { ClaimedDelivery } from "./claimed-delivery.ts";
import type { TryOutcome } from "./run-try.ts";

/** What finishing may use. */
export type FinishParts = {
  readonly lane: SettleLane<TryReport, TryVerdict>;
  /** Told when the endpoint has more that is due: a claim may find the room that this try gave back. */
  onMoreDue(): void;
  readonly signals: Signals;
  readonly logger: Logger;
};

/** Writes what became of a try, under its fence. Points: `settling` (answered, not yet written), `settled`. */
export async function finishTry(
  delivery: ClaimedDelivery,
  outcome: TryOutcome,
  control: RunControl,
  parts: FinishParts,
): Promise<void> {
  if (outcome.kind === "ABANDONED") return;
  const { report } = outcome;
  await parts.signals.reach("settling", report);
  const verdict = await parts.lane.settle(report, () => control.isTrusted());
  await parts.signals.reach("settled", verdict);
  parts.logger.info(tryLine(delivery, report, verdict), "try.ended");
  if (verdict.verdict === "SETTLED" && verdict.moreDue) parts.onMoreDue();
}

/** One line explains the try, from the report that is stored. It holds no URL, no body and no signature. */
function tryLine(delivery: ClaimedDelivery, report: TryReport, verdict: TryVerdict) {
  const failure: { code?: string; disposition?: string } | null = report.failure;
  return {
    eventId: delivery.eventId,
    deliveryId: delivery.id,
    endpointId: delivery.endpointId,
    callerId: delivery.callerId,
    try: delivery.attemptsUsed,
    outcome: report.outcome,
    code: failure?.code ?? null,
    disposition: failure?.disposition ?? null,
    httpStatus: report.httpStatus,
    latencyMs: report.latencyMs,
    backoffMs: report.backoffMs,
    retryAfterMs: report.retryAfterMs,
    verdict: verdict.verdict,
    state: verdict.verdict === "SETTLED" ? verdict.state : null,
    deadLetterReason: verdict.verdict === "SETTLED" ? verdict.deadLetterReason : null,
  };
}
