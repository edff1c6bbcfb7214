import { ROBOTS_BYTES_MAX } from "../robots/parse-robots.ts";
import type { FetchRobots } from "../robots/robots-gate.ts";
import type { Hop } from "./admission.ts";
import { createPrefixStage } from "./body-stage.ts";
import { type AttemptParts, fetchAttempt } from "./fetch-attempt.ts";
import type { RunningAttempts } from "./running-attempts.ts";
import { createStop } from "./stop.ts";

/** A file that declares itself larger is no robots.txt; up to here the rules are what its first 500 KiB say. */
const DECLARED_BYTES_MAX = 64 * 1024 * 1024;

/** It serves all jobs that wait for it and belongs to none, so no job's deadline is its own. */
const NO_DEADLINE = Infinity;

/**
 * Fetches robots.txt under the policy and limits of any target, without asking robots.txt, and reads no further than its
 * rules count. One that takes longer than `robotsTimeoutMs` fails as the target's timeout.
 */
export function createRobotsFetch(
  parts: Omit<AttemptParts, "robots" | "meter">,
  running: RunningAttempts,
): FetchRobots {
  return async (url, { signal, admit, meter, egress }) => {
    const file = createPrefixStage(ROBOTS_BYTES_MAX + 1);
    const limitMs = parts.limits.robotsTimeoutMs;
    const stop = createStop({ signal, deadline: NO_DEADLINE, limitMs, nowMs: parts.clock.monotonicMs() });
    const request = {
      url,
      method: "GET",
      headers: { accept: "text/plain,*/*;q=0.8" },
      accept: "ANY_RESPONSE",
      contentTypes: null,
      maxBodyBytes: DECLARED_BYTES_MAX,
      callerId: "",
      robots: "IGNORE",
      deadline: NO_DEADLINE,
      attemptLimitMs: limitMs,
      capture: "DOM",
      egress,
    } as const;
    const robotsParts = { ...parts, scope: { ...parts.scope, transport: "ROBOTS" }, robots: null, meter } as const;
    // The file is nobody's page.
    const control = { stop, admit: (hop: Hop) => admit({ ...hop, purpose: "ROBOTS" }) };
    const outcome = await running.track(stop, fetchAttempt(request, file, control, robotsParts));
    if (outcome.ok) {
      return { kind: "ANSWERED", response: { httpStatus: outcome.response.httpStatus, body: file.read() } };
    }
    if (!outcome.aborted) return { kind: "FAILED", failure: outcome.failure };
    if (outcome.wait !== null) return { kind: "WAIT", wait: outcome.wait };
    throw new Error("the robots.txt is not wanted any more");
  };
}
