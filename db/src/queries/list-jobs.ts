import type { Job, JobQuery, Page } from "@keble-scraper/contract";
import { type SQL, and, desc, eq, gt, isNotNull, isNull, lt, sql } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { jobs } from "../schema/jobs.ts";
import { encodeCursor } from "./cursor.ts";
import { selectJobRows } from "./job-row.ts";
import { toJob } from "./to-job.ts";

type Filter = Omit<JobQuery, "cursor" | "label"> & {
  /** Null reads every caller's jobs. */
  readonly callerId: string | null;
  /** The last id of the page before. */
  readonly afterId: string | null;
  readonly label: { readonly key: string; readonly value: string } | null;
};

/** A page of jobs, newest first. Ids are UUIDv7, so their order is the order of submits. */
export async function listJobs(reads: PostgresJsDatabase, filter: Filter): Promise<Page<Job>> {
  const rows = await selectJobRows(reads)
    .where(
      and(
        filter.callerId === null ? undefined : eq(jobs.callerId, filter.callerId),
        filter.afterId === null ? undefined : lt(jobs.id, filter.afterId),
        filter.status === undefined ? undefined : byStatus(filter.status),
        filter.label === null
          ? undefined
          : sql`${jobs.labels} <> '{}'::jsonb and ${jobs.labels} @> ${JSON.stringify({ [filter.label.key]: filter.label.value })}::jsonb`,
        filter.createdAfter === undefined ? undefined : gt(jobs.createdAt, new Date(filter.createdAfter)),
        filter.createdBefore === undefined ? undefined : lt(jobs.createdAt, new Date(filter.createdBefore)),
      ),
    )
    .orderBy(desc(jobs.id))
    .limit(filter.limit + 1);
  const items = rows.slice(0, filter.limit).map(toJob);
  const last = items.at(-1);
  return { items, nextCursor: rows.length > filter.limit && last !== undefined ? encodeCursor(last.id) : null };
}

/** WAITING is QUEUED with a due time ahead; the finished_at terms let the partial indexes serve. */
function byStatus(status: Job["status"]): SQL | undefined {
  switch (status) {
    case "QUEUED":
      return and(isNull(jobs.finishedAt), eq(jobs.status, "QUEUED"), sql`${jobs.dueAt} <= clock_timestamp()`);
    case "WAITING":
      return and(isNull(jobs.finishedAt), eq(jobs.status, "QUEUED"), sql`${jobs.dueAt} > clock_timestamp()`);
    case "RUNNING":
      return and(isNull(jobs.finishedAt), eq(jobs.status, "RUNNING"));
    case "SUCCEEDED":
    case "FAILED":
    case "CANCELLED":
      return and(isNotNull(jobs.finishedAt), eq(jobs.status, status));
  }
}
