import { eq, sql } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { callbackEndpoints } from "../schema/callback-endpoints.ts";
import { callbackEvents } from "../schema/callback-events.ts";
import { artifacts } from "../schema/artifacts.ts";
import { jobs } from "../schema/jobs.ts";

/** The select that every read of jobs starts from: a job with its endpoint's name, its event and its artifact's hash. */
export function selectJobRows(reads: PostgresJsDatabase) {
  return reads
    .select({
      id: jobs.id,
      callerId: jobs.callerId,
      status: jobs.status,
      isWaiting: sql<boolean>`${jobs.status} = 'QUEUED' and ${jobs.dueAt} > clock_timestamp()`,
      target: jobs.target,
      transport: jobs.transport,
      routes: jobs.routes,
      freshness: jobs.freshness,
      accept: jobs.accept,
      robots: jobs.robots,
      capture: jobs.capture,
      egress: jobs.egress,
      labels: jobs.labels,
      attemptBudget: jobs.attemptBudget,
      attemptsUsed: jobs.attemptsUsed,
      maxBodyBytes: jobs.maxBodyBytes,
      costCapMicros: jobs.costCapMicros,
      costMicros: jobs.costMicros,
      result: jobs.result,
      failure: jobs.failure,
      artifactId: jobs.artifactId,
      artifactSha256: artifacts.sha256,
      artifactSizeBytes: artifacts.sizeBytes,
      endpointName: callbackEndpoints.name,
      eventId: callbackEvents.id,
      eventState: callbackEvents.state,
      callbackOutcome: jobs.callbackOutcome,
      createdAt: jobs.createdAt,
      dueAt: jobs.dueAt,
      deadlineAt: jobs.deadlineAt,
      finishedAt: jobs.finishedAt,
    })
    .from(jobs)
    .leftJoin(artifacts, eq(artifacts.id, jobs.artifactId))
    .leftJoin(callbackEndpoints, eq(callbackEndpoints.id, jobs.callbackEndpointId))
    .leftJoin(callbackEvents, eq(callbackEvents.jobId, jobs.id));
}

/** A job as it is read, before it becomes the public one. */
export type JobRow = Awaited<ReturnType<typeof selectJobRows>>[number];
