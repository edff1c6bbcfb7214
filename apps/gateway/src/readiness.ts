import {
  type Clock,
  type HealthCheck,
  type HealthReport,
  type HealthState,
  runHealthChecks,
} from "@keble-scraper/service";
import type { GatewaySettings } from "./settings.ts";

/** How long an answer stands: whoever asks, and however often, the parts are asked once a second at most. */
const STANDS_MS = 1_000;
/** A part that has not answered by then is down; under the patience of the sum. */
const PROBE_TIMEOUT_MS = 1_500;

/**
 * What the gateway needs. Without the database or intake it can do nothing (down); without artifacts, callbacks,
 * fetching or retention it still takes and reads jobs (degraded).
 */
export function createChecks(settings: GatewaySettings["internal"], database: HealthCheck): HealthCheck[] {
  return [
    database,
    { name: "intake", check: () => probe(settings.urls.intake, "down") },
    { name: "artifacts", check: () => probe(settings.urls.artifacts, "degraded") },
    { name: "callbacks", check: () => probe(settings.urls.callbacks, "degraded") },
    { name: "fetching", check: () => probe(settings.urls.fetching, "degraded") },
    { name: "retention", check: () => probe(settings.urls.retention, "degraded") },
  ];
}

/** Readiness, asked of the parts once a second at most. */
export function createReadiness(checks: readonly HealthCheck[], clock: Clock): () => Promise<HealthReport> {
  let report: Promise<HealthReport> | undefined;
  let askedAt = 0;
  return () => {
    const now = clock.monotonicMs();
    if (report === undefined || now - askedAt >= STANDS_MS) {
      report = runHealthChecks(checks);
      askedAt = now;
    }
    return report;
  };
}

async function probe(url: string, otherwise: HealthState): Promise<HealthState> {
  try {
    const response = await fetch(new URL("/readyz", url), {
      redirect: "error",
      signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
    });
    await response.body?.cancel();
    return response.ok ? "ok" : otherwise;
  } catch {
    return otherwise;
  }
}
