import type { Sql, Tx } from "../../database.ts";
import { appendAudit } from "../../steps/append-audit.ts";
import { recordFinding } from "./record-finding.ts";
import type { BlobToVerify } from "./scrub-blobs.ts";

/** How long what a lost blob leaves behind is kept. */
export type RetireOptions = {
  readonly kind: "MISSING" | "DAMAGED";
  /** The longest a signed URL answers: what is left of the object goes after that. */
  readonly urlMs: number;
  readonly auditRetentionDays: number;
};

/**
 * RETIRED: its artifacts are tombstones, so many of them. CHANGED: the blob was no longer that AVAILABLE object. BUSY: one
 * of its rows was locked; nothing was changed, and it may be tried again.
 */
export type RetireVerdict =
  | { readonly verdict: "RETIRED"; readonly artifacts: number }
  | { readonly verdict: "CHANGED" | "BUSY" };

/** A URL that was signed by a clock which is ahead of the database's is answered all the same. */
const CLOCK_SLACK_MS = 60_000;

/**
 * Gives up a blob whose bytes are gone or not its own, in one transaction: its artifacts are deleted (410), pinned ones
 * too, since bytes that are lost can't be kept; their cache entries go; what is left of the object is queued for deletion;
 * the finding and an audit row for each artifact are written. Equal bytes that come later get a new object: while this
 * blob was AVAILABLE, no settle would have stored them.
 *
 * Locks and judges like `reviewArtifacts`: the blob first, then its artifacts, nothing waited for, and all of it looked at
 * again in a second statement.
 */
export async function retireBlob(
  sql: Sql,
  blob: Pick<BlobToVerify, "id" | "sha256" | "generation">,
  options: RetireOptions,
): Promise<RetireVerdict> {
  return sql.begin(async (tx) => {
    const locked = await tx`select 1 from blobs where id = ${blob.id} for update skip locked`;
    const artifacts = await tx<{ id: string }[]>`
      select id from artifacts where blob_id = ${blob.id} for update skip locked`;
    const [now] = await tx<[{ isSame: boolean; artifacts: number }]>`
      select exists (select 1 from blobs where id = ${blob.id} and state = 'AVAILABLE' and generation = ${blob.generation}) as "isSame",
             (select count(*) from artifacts where blob_id = ${blob.id})::int as artifacts`;
    if (!now.isSame) return { verdict: "CHANGED" };
    if (locked.length === 0 || now.artifacts !== artifacts.length) return { verdict: "BUSY" };
    const lost = await markLost(tx, blob.id, options);
    await recordFinding(tx, { ...blob, kind: options.kind, retentionDays: options.auditRetentionDays });
    for (const { id, callerId } of lost) {
      await appendAudit(
        tx,
        {
          action: "artifact.lost",
          by: { actor: "system:scrub", requestId: null },
          callerId,
          subject: `artifact:${id}`,
          details: { kind: options.kind, sha256: blob.sha256 },
        },
        options.auditRetentionDays,
      );
    }
    return { verdict: "RETIRED", artifacts: lost.length };
  });
}

function markLost(tx: Tx, blobId: string, { urlMs, auditRetentionDays }: RetireOptions) {
  return tx<{ id: string; callerId: string }[]>`
    with lost as (
      update artifacts
      set state = 'DELETED', blob_id = null, deleted_at = clock_timestamp(),
          review_at = clock_timestamp() + make_interval(secs => ${auditRetentionDays}::float8 * 86400)
      where blob_id = ${blobId}
      returning id, caller_id
    ),
    dropped as (
      delete from cache_entries e
      using (select e.key, e.caller_id
             from lost cross join lateral (
               select key, caller_id from cache_entries where artifact_id = lost.id for update skip locked
             ) e) gone
      where e.key = gone.key and e.caller_id = gone.caller_id
    ),
    retired as (
      update blobs set state = 'DELETING' where id = ${blobId} returning id, sha256, generation
    ),
    queued as (
      insert into object_deletions (id, sha256, generation, blob_id, due_at)
      select uuid_v7(), r.sha256, r.generation, r.id,
             clock_timestamp() + make_interval(secs => ${(urlMs + CLOCK_SLACK_MS) / 1000}::float8)
      from retired r
      on conflict (sha256, generation) do update
      set blob_id = excluded.blob_id, due_at = greatest(object_deletions.due_at, excluded.due_at)
    )
    select id, caller_id as "callerId" from lost order by id`;
}
