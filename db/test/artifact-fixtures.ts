import { randomBytes } from "node:crypto";
import { v7 as uuidv7 } from "uuid";
import { type AttemptReport, type JobLease, settleJobs } from "../src/commands/fetching/index.ts";
import { reviewArtifacts } from "../src/commands/artifacts/index.ts";
import type { Database } from "../src/database.ts";
import { claim, newJob, OPTIONS, succeeded } from "./job-fixtures.ts";
import { type NewJob, submitJobs } from "../src/commands/intake/index.ts";

export const DAY_MS = 86_400_000;

/** What maintenance reviews by, as the defaults have it. */
export const REVIEW = {
  limit: 200,
  artifactRetentionMs: 90 * DAY_MS,
  evidenceRetentionMs: 7 * DAY_MS,
  urlMs: 300_000,
  auditRetentionDays: 400,
};

/** An artifact of one caller and the bytes it is made of. */
export type TestArtifact = { readonly id: string; readonly blobId: string; readonly sha256: string };

/** Stores `count` artifacts of different bytes that nothing holds and that are due to be looked at. */
export async function storeArtifacts(
  database: Database,
  count: number,
  { callerId = "acme", isDue = true }: { readonly callerId?: string; readonly isDue?: boolean } = {},
): Promise<TestArtifact[]> {
  const rows = Array.from({ length: count }, () => ({
    id: uuidv7(),
    blobId: uuidv7(),
    sha256: randomBytes(32).toString("hex"),
  }));
  const [ids, blobIds, hashes] = [
    rows.map((row) => row.id),
    rows.map((row) => row.blobId),
    rows.map((row) => row.sha256),
  ];
  await database.commands`
    with input as (
      select * from unnest(${ids}::uuid[], ${blobIds}::uuid[], ${hashes}::text[]) as i (id, blob_id, sha256)
    ), stored as (
      insert into blobs (id, sha256, generation, size_bytes) select blob_id, decode(sha256, 'hex'), blob_id::text, 5 from input
    )
    insert into artifacts (id, caller_id, blob_id, sha256, size_bytes, source_url, final_url, http_status, fetched_at, review_at)
    select id, ${callerId}, blob_id, decode(sha256, 'hex'), 5, 'https://shop.example.com/', 'https://shop.example.com/', 200,
           clock_timestamp(), clock_timestamp() + ${isDue ? "-1 second" : "1 day"}::interval
    from input`;
  return rows;
}

/** Stores one such artifact. */
export async function storeArtifact(database: Database, callerId = "acme"): Promise<TestArtifact> {
  const [artifact] = await storeArtifacts(database, 1, { callerId });
  return artifact!;
}

/** What is there of an artifact: its state, and its blob's (null: no blob). */
export async function stateOf(database: Database, id: string) {
  const [row] = await database.commands<{ state: string; blob: string | null }[]>`
    select a.state, b.state as blob from artifacts a left join blobs b on b.id = a.blob_id where a.id = ${id}`;
  return row ?? null;
}

/** Makes artifacts due now, as time does. */
export async function makeDue(database: Database, ...ids: readonly string[]): Promise<void> {
  await database.commands`update artifacts set review_at = clock_timestamp() - interval '1 s' where id = any(${ids}::uuid[])`;
}

/** One review of whatever is due. */
export async function review(database: Database, overrides: Partial<typeof REVIEW> = {}) {
  return reviewArtifacts(database.commands, { ...REVIEW, ...overrides });
}

/** Makes one artifact due and reviews it: true when it is gone afterwards. */
export async function isDeletedByReview(database: Database, id: string): Promise<boolean> {
  await makeDue(database, id);
  await review(database);
  return (await stateOf(database, id))?.state === "DELETED";
}

/** Leases of `count` new jobs of a caller. */
export async function leases(database: Database, count: number, callerId = "acme"): Promise<JobLease[]> {
  return leasesOf(
    database,
    Array.from({ length: count }, () => newJob()),
    callerId,
  );
}

/** Leases of these jobs, in their order. */
export async function leasesOf(database: Database, jobs: readonly NewJob[], callerId = "acme"): Promise<JobLease[]> {
  await submitJobs(database.commands, { callerId, jobs: [...jobs], queuedMax: null });
  const taken = new Map<string, JobLease>();
  const until = performance.now() + 5_000;
  while (taken.size < jobs.length) {
    for (const lease of await claim(database, Math.min(50, jobs.length - taken.size))) taken.set(lease.id, lease);
    if (performance.now() > until) throw new Error("nothing to claim");
  }
  return jobs.map((job) => taken.get(job.id)!);
}

/** A success whose bytes are those of a blob that was seen. */
export function succeededSeen(lease: JobLease, artifact: Pick<TestArtifact, "blobId" | "sha256">): AttemptReport {
  const report = succeeded(lease, artifact.sha256);
  return { ...report, bytes: { ...report.bytes!, kind: "SEEN", blobId: artifact.blobId } };
}

/** Settles reports by the default retentions. */
export async function settle(database: Database, ...reports: readonly AttemptReport[]) {
  return settleJobs(database.commands, reports, OPTIONS);
}
