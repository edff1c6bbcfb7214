import type { Job } from "@keble-scraper/contract";
import { and, eq, inArray } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { jobs } from "../schema/jobs.ts";
import { selectJobRows } from "./job-row.ts";
import { toJob } from "./to-job.ts";

/** One job. `callerId` null reads any caller's (an operator); another caller's job is not found. */
export async function findJob(reads: PostgresJsDatabase, id: string, callerId: string | null): Promise<Job | null> {
  const own = callerId === null ? undefined : eq(jobs.callerId, callerId);
  const [row] = await selectJobRows(reads)
    .where(and(eq(jobs.id, id), own))
    .limit(1);
  return row === undefined ? null : toJob(row);
}

/** Jobs by id, at most 1,000, in no order; ids without a row are left out. */
export async function listJobsById(reads: PostgresJsDatabase, ids: readonly string[]): Promise<Job[]> {
  if (ids.length === 0) return [];
  const rows = await selectJobRows(reads).where(inArray(jobs.id, [...ids]));
  return rows.map(toJob);
}
