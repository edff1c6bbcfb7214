import { type Job, type JobCallback, formatTime } from "@keble-scraper/contract";
import type { JobRow } from "./job-row.ts";

/** The public job. What is stored was parsed by the contract when it came in, so it is taken as it is. */
export function toJob(row: JobRow): Job {
  return {
    id: row.id,
    callerId: row.callerId,
    status: row.isWaiting ? "WAITING" : (row.status as Job["status"]),
    target: row.target as Job["target"],
    transport: row.transport as Job["transport"],
    routes: row.routes as Job["routes"],
    freshness: row.freshness as Job["freshness"],
    accept: row.accept as Job["accept"],
    robots: row.robots as Job["robots"],
    ...(row.capture === null ? {} : { capture: row.capture as NonNullable<Job["capture"]> }),
    ...(row.egress === null ? {} : { egress: row.egress }),
    limits: {
      attemptBudget: row.attemptBudget,
      attemptsUsed: row.attemptsUsed,
      deadlineAt: formatTime(row.deadlineAt),
      maxBodyBytes: row.maxBodyBytes,
      costCapMicros: row.costCapMicros,
      costMicros: row.costMicros,
    },
    result: toResult(row),
    failure: row.failure as Job["failure"],
    callback: toCallback(row),
    labels: row.labels as Job["labels"],
    createdAt: formatTime(row.createdAt),
    dueAt: formatTime(row.dueAt),
    finishedAt: row.finishedAt === null ? null : formatTime(row.finishedAt),
  };
}

/** The stored result lacks what the artifact's row says. */
export type StoredResult = Omit<NonNullable<Job["result"]>, "artifactId" | "sha256" | "sizeBytes">;

function toResult(row: JobRow): Job["result"] {
  if (row.result === null) return null;
  return {
    ...(row.result as StoredResult),
    artifactId: row.artifactId,
    sha256: row.artifactSha256?.toString("hex") ?? null,
    sizeBytes: row.artifactSizeBytes ?? 0,
  };
}

/** No event by the time the job has ended: it was purged and its end is on the job, or the endpoint's filter did not want it. */
function toCallback(row: JobRow): JobCallback | null {
  if (row.endpointName === null) return null;
  if (row.finishedAt === null) return { endpoint: row.endpointName, eventId: null, state: "PENDING" };
  return {
    endpoint: row.endpointName,
    eventId: row.eventId,
    state: row.eventId === null ? (row.callbackOutcome ?? "NOT_WANTED") : (row.eventState as JobCallback["state"]),
  };
}
