import type { Job } from "@keble-scraper/contract";
import { findJob } from "@keble-scraper/db";
import type { CallContext } from "@keble-scraper/service";
import type { IntakeContext } from "./context.ts";

/** Left of a call's time for the answer to travel, in milliseconds. */
const ANSWER_MS = 250;

/**
 * The job as soon as it is terminal, or as it is when the wait is over. The wait ends before the call's own deadline, so
 * that there is an answer to give. Null when the caller has no such job.
 */
export async function waitForJob(
  context: IntakeContext & CallContext,
  options: { readonly id: string; readonly callerId: string | null; readonly waitSeconds: number },
): Promise<Job | null> {
  const untilDeadlineMs = context.deadlineAt - Date.now() - ANSWER_MS;
  const timeoutMs = Math.max(0, Math.min(options.waitSeconds * 1_000, untilDeadlineMs));
  const read = () => findJob(context.database.reads, options.id, options.callerId);
  return context.waits.until(read, options.id, timeoutMs, context.signal);
}
