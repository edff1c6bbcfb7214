import type { Sql, Tx } from "../../database.ts";

/** How long what holds an artifact holds it, and what comes after. */
export type ReviewOptions = {
  /** The most artifacts of one transaction. */
  readonly limit: number;
  /** From a job's end. */
  readonly artifactRetentionMs: number;
  /** From the end of an attempt whose evidence it is. */
  readonly evidenceRetentionMs: number;
  /** The longest a signed URL answers. */
  readonly urlMs: number;
  /** How long a tombstone stays. */
  readonly auditRetentionDays: number;
};

/** How many due artifacts were looked at, how many of them are deleted now, and how many stored objects wait for their own end. */
export type ReviewedArtifacts = { readonly reviewed: number; readonly deleted: number; readonly freed: number };

/** A URL that was signed by a clock which is ahead of the database's is answered all the same. */
const CLOCK_SLACK_MS = 60_000;

/**
 * Looks at artifacts that are due, longest due first: one that something still holds is put off to the end of its longest
 * hold; any other is deleted, with its cache entries, and becomes a tombstone. A blob that no artifact is left of
 * waits until no signed URL can name it any more, then `takeObjectDeletions` gives it out.
 *
 * The rows are locked first and their holds read in a second statement: the first has the snapshot of a time when whoever
 * held the locks may not have committed, and would delete what has just been acknowledged. It waits for no lock, so it
 * can be part of no deadlock: what is taken is due again.
 */
export async function reviewArtifacts(sql: Sql, options: ReviewOptions): Promise<ReviewedArtifacts> {
  return sql.begin(async (tx) => {
    const due = await tx<{ id: string }[]>`
      select a.id
      from artifacts a join blobs b on b.id = a.blob_id
      where a.review_at <= statement_timestamp() and a.state = 'AVAILABLE'
      order by a.review_at
      limit ${options.limit}
      for update of b, a skip locked`;
    if (due.length === 0) return { reviewed: 0, deleted: 0, freed: 0 };
    const ids = due.map((row) => row.id);
    const [counts] = await judge(tx, ids, options);
    return { reviewed: ids.length, ...counts };
  });
}

/**
 * A job that refers to an artifact and has not ended holds it from now on: none is known to do so. Maxima are of
 * expressions, so that each is read by its artifact, and never by the index of all expiries.
 */
function judge(tx: Tx, ids: readonly string[], options: ReviewOptions) {
  const { artifactRetentionMs, auditRetentionDays, evidenceRetentionMs, urlMs } = options;
  return tx<[{ deleted: number; freed: number }]>`
    with looked as materialized (
      select a.id, a.blob_id, clock_timestamp() as now, greatest(job.until, evidence.until, pin.until, entry.until) as held_until
      from unnest(${ids}::uuid[]) as due (id)
      join artifacts a on a.id = due.id
      left join lateral (
        select coalesce(j.finished_at, clock_timestamp()) + make_interval(secs => ${artifactRetentionMs / 1000}::float8) as until
        from jobs j where j.artifact_id = a.id order by j.finished_at desc limit 1
      ) job on true
      left join lateral (
        select t.finished_at + make_interval(secs => ${evidenceRetentionMs / 1000}::float8) as until
        from attempts t where t.evidence_artifact_id = a.id order by t.finished_at desc limit 1
      ) evidence on true
      left join lateral (
        select max(coalesce(p.expires_at, 'infinity')) as until from artifact_pins p where p.artifact_id = a.id
      ) pin on true
      left join lateral (
        select max(coalesce(e.expires_at, 'infinity')) as until from cache_entries e where e.artifact_id = a.id
      ) entry on true
    ),
    put_off as (
      update artifacts a set review_at = l.held_until from looked l where a.id = l.id and l.held_until > l.now
    ),
    marked as (
      update artifacts a
      set state = 'DELETED', blob_id = null, deleted_at = l.now,
          review_at = l.now + make_interval(secs => ${auditRetentionDays}::float8 * 86400)
      from looked l
      where a.id = l.id and (l.held_until is null or l.held_until <= l.now)
      returning a.id, l.blob_id
    ),
    dropped as (
      delete from cache_entries
      where ctid = any (array(
        select e.ctid from marked m cross join lateral (
          select ctid from cache_entries where artifact_id = m.id for update skip locked
        ) e
      ))
    ),
    freed as (
      update blobs b set state = 'DELETING'
      from (select distinct blob_id as id from marked) m
      where b.id = m.id and b.state = 'AVAILABLE'
        and not exists (
          select 1 from artifacts o where o.blob_id = b.id and not exists (select 1 from marked where marked.id = o.id)
        )
      returning b.id, b.sha256, b.generation
    ),
    queued as (
      insert into object_deletions (id, sha256, generation, blob_id, due_at)
      select uuid_v7(), f.sha256, f.generation, f.id,
             clock_timestamp() + make_interval(secs => ${(urlMs + CLOCK_SLACK_MS) / 1000}::float8)
      from freed f
      on conflict (sha256, generation) do update
      set blob_id = excluded.blob_id, due_at = greatest(object_deletions.due_at, excluded.due_at)
    )
    select (select count(*) from marked)::int as deleted, (select count(*) from freed)::int as freed`;
}
