import { type Hop, NO_ALLOWED_TARGETS, parseAllowedTargets, vetUrl } from "@keble-scraper/egress";
import type { AdmittedJob } from "../src/admission/admission.ts";

/** A hop whose attempt can be stopped. */
export type TestHop = Hop & { stopNow(reason?: "ABORTED" | "ATTEMPT_LIMIT"): void };

const LISTED = parseAllowedTargets(["127.0.0.1:8080"]);
let jobs = 0;

/** A first page request; 127.0.0.1:8080 is an allowed target. */
export function hopTo(href: string, more: Partial<Hop> = {}): TestHop {
  const vetted = vetUrl(href, { allowedTargets: LISTED.ok ? LISTED.targets : NO_ALLOWED_TARGETS });
  if (!vetted.ok) throw new Error(vetted.reason);
  const stop = createTestStop();
  return {
    url: vetted.url,
    purpose: "PAGE",
    isFirst: true,
    crawlDelayMs: null,
    stop,
    stopNow: (reason = "ABORTED") => stop.fire(reason),
    ...more,
  };
}

/** A job of `a.example.com` by DIRECT, claimed just now. */
export function jobOf(more: Partial<AdmittedJob> = {}): AdmittedJob {
  jobs += 1;
  const nowMs = performance.now();
  const own = { id: `job-${jobs}`, token: `token-${process.pid}-${jobs}`, route: "DIRECT", hostKey: "a.example.com" };
  return { ...own, booking: null, claimedAtMs: nowMs, deadlineAtMs: nowMs + 600_000, ...more };
}

/** The most of these moments in any second. */
export function peakOf(times: readonly number[]): number {
  const sorted = times.toSorted((one, other) => one - other);
  return Math.max(...sorted.map((from) => sorted.filter((at) => at >= from && at < from + 1_000).length));
}

function createTestStop(): Hop["stop"] & { fire(reason: "ABORTED" | "ATTEMPT_LIMIT"): void } {
  const controller = new AbortController();
  const listeners = new Set<() => void>();
  let reason: "ABORTED" | "ATTEMPT_LIMIT" | null = null;
  const fire = (why: "ABORTED" | "ATTEMPT_LIMIT") => {
    reason ??= why;
    controller.abort();
    for (const listener of listeners) listener();
    listeners.clear();
  };
  return {
    get reason() {
      return reason;
    },
    onStop(listener) {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
    signal: controller.signal,
    abort: () => fire("ABORTED"),
    end: () => listeners.clear(),
    fire,
  };
}
