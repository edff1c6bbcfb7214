import { type Route, UPSTREAM_CODES, type UpstreamCode } from "@keble-scraper/contract";
import { type ProbeResult, type QuarantineAdvice, quarantineOf } from "@keble-scraper/egress";
import type { Logger } from "@keble-scraper/service";
import type { SupplierProbe, SupplierProbes } from "./supplier-probe.ts";

/** A quarantine that stands, as the worker needs it. */
export type StandingQuarantine = {
  readonly route: Route;
  /** OPERATOR, COST_OVERRUN, or the code of a supplier's failure. */
  readonly reason: string;
  /** Null: until somebody releases it. */
  readonly liftsAt: Date | null;
};

/** What a check works with. */
export type RouteCheckParts = {
  readonly probes: SupplierProbes;
  list(): Promise<readonly StandingQuarantine[]>;
  /** Takes the turn to ask: false when another worker has taken it, or the quarantine is gone or another one by now. */
  takeTurn(quarantine: StandingQuarantine): Promise<boolean>;
  /** Whether it would end by itself before it could be asked about in good time. */
  isEndingSoon(quarantine: StandingQuarantine): boolean;
  /** Moves the end to so far from now, never nearer. */
  prolong(quarantine: StandingQuarantine, advice: QuarantineAdvice, nativeCode: string | null): Promise<void>;
  /** False when it was no longer there to lift. */
  lift(quarantine: StandingQuarantine): Promise<boolean>;
  /** How long one question may take, everything it asks included. */
  readonly probeTimeoutMs: number;
  readonly logger: Logger;
};

/**
 * Makes one round: the suppliers of all quarantined routes are asked at the same time, each once. Proof of health lifts a
 * quarantine, the supplier's own word that our account is not served moves an end that is near, anything else changes nothing. Only a
 * supplier's failure is asked about: an operator's decision, and a bill above its reservation, no answer can refute. One
 * line of log a probe. What fails for one route harms no other; the round fails as a whole when all are done.
 */
export function createRouteCheck(parts: RouteCheckParts): (signal: AbortSignal) => Promise<void> {
  async function check(
    quarantine: StandingQuarantine,
    quarantinedFor: UpstreamCode,
    probe: SupplierProbe,
    signal: AbortSignal,
  ): Promise<void> {
    if (!(await parts.takeTurn(quarantine))) return;
    const startedAt = performance.now();
    const result = await ask(probe, quarantinedFor, signal);
    // A question that a stop cut off says nothing.
    if (signal.aborted && result?.ok !== true) return;
    const failure = result?.ok === false ? result.failure : null;
    parts.logger.info(
      {
        route: quarantine.route,
        reason: quarantine.reason,
        outcome: await apply(quarantine, result),
        ...(failure === null ? {} : { code: failure.code, nativeCode: failure.nativeCode }),
        totalMs: Math.round(performance.now() - startedAt),
      },
      "route.probed",
    );
  }

  /** Null: no answer in time, or a probe that faulted. One that does not end by its signal is left behind. */
  async function ask(
    probe: SupplierProbe,
    quarantinedFor: UpstreamCode,
    signal: AbortSignal,
  ): Promise<ProbeResult | null> {
    const timeoutMs = parts.probeTimeoutMs;
    if (signal.aborted) return null;
    const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    let onAbort = () => {};
    const late = new Promise<null>((resolve) => {
      onAbort = () => resolve(null);
      limit.addEventListener("abort", onAbort, { once: true });
    });
    try {
      return await Promise.race([probe({ quarantinedFor, timeoutMs, signal: limit }), late]);
    } catch (error) {
      parts.logger.error({ err: error }, "probe.faulted");
      return null;
    } finally {
      limit.removeEventListener("abort", onAbort);
    }
  }

  async function apply(
    quarantine: StandingQuarantine,
    result: ProbeResult | null,
  ): Promise<"LIFTED" | "PROLONGED" | "KEPT"> {
    if (result?.ok === true) return (await parts.lift(quarantine)) ? "LIFTED" : "KEPT";
    const advice = result === null ? null : quarantineOf(result.failure);
    if (result === null || advice === null || !parts.isEndingSoon(quarantine)) return "KEPT";
    await parts.prolong(quarantine, advice, result.failure.nativeCode ?? null);
    return "PROLONGED";
  }

  return async (signal) => {
    const standing = await parts.list();
    const checks = standing.flatMap((quarantine) => {
      const quarantinedFor = UPSTREAM_CODES.find((code) => code === quarantine.reason);
      const probe = parts.probes.get(quarantine.route);
      return quarantinedFor && probe ? [check(quarantine, quarantinedFor, probe, signal)] : [];
    });
    const faults = (await Promise.allSettled(checks)).flatMap((end) =>
      end.status === "rejected" ? [end.reason as unknown] : [],
    );
    if (faults.length > 0) throw new AggregateError(faults, "some routes could not be checked");
  };
}
