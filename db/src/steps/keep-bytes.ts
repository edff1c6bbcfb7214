import type { Fragment, Tx } from "../database.ts";

/** How long an ended job holds its bytes, and a failed attempt its evidence. Absent: 90 and 7 days. */
export type BytesHolds = { readonly artifactRetentionMs?: number; readonly evidenceRetentionMs?: number };

const DAY_MS = 86_400_000;

/**
 * Turns the bytes of a settle's reports into rows, as a part of its WITH list. Reads the settle's `input` and `held`, and
 * defines `blob`, the AVAILABLE blob of each job whose bytes are there, and `artifact`, one for each caller and blob. A
 * hash that was put twice has one blob: the object that lost is to be deleted. A blob that was seen and is gone by now is
 * in neither. Locks blobs by hash, then artifacts.
 *
 * A new artifact is looked at when this settle's own hold on it may be over: later holds are found then.
 */
export function keepBytes(sql: Tx, holds: BytesHolds): Fragment {
  const { artifactRetentionMs = 90 * DAY_MS, evidenceRetentionMs = 7 * DAY_MS } = holds;
  return sql`
    put as (
      insert into blobs (id, sha256, generation, size_bytes)
      select distinct on (i.sha256) i.blob_id, decode(i.sha256, 'hex'), i.generation, i.size_bytes
      from held h join input i on i.id = h.id
      where i.bytes_kind = 'PUT'
      order by i.sha256, i.id
      on conflict (sha256) where state = 'AVAILABLE' do update set state = blobs.state
      returning id, sha256, generation
    ),
    seen as materialized (
      select b.id, b.sha256
      from (select i.blob_id, min(i.sha256) as sha256 from held h join input i on i.id = h.id
            where i.bytes_kind = 'SEEN' group by i.blob_id order by 2) s
      cross join lateral (
        select b.id, b.sha256 from blobs b where b.id = s.blob_id and b.state = 'AVAILABLE' for key share
      ) b
    ),
    blob as (
      select i.id as job_id, coalesce(put.id, seen.id) as blob_id
      from held h join input i on i.id = h.id
      left join put on put.sha256 = decode(i.sha256, 'hex') and i.bytes_kind = 'PUT'
      left join seen on seen.id = i.blob_id and i.bytes_kind = 'SEEN'
      where coalesce(put.id, seen.id) is not null
    ),
    losers as (
      insert into object_deletions (id, sha256, generation)
      select uuid_v7(), put.sha256, i.generation
      from held h join input i on i.id = h.id join put on put.sha256 = decode(i.sha256, 'hex')
      where i.bytes_kind = 'PUT' and put.generation <> i.generation
    ),
    artifact as (
      insert into artifacts (id, caller_id, blob_id, sha256, size_bytes, content_type, source_url, final_url, http_status, fetched_at, review_at)
      select distinct on (h.caller_id, b.blob_id) i.artifact_id, h.caller_id, b.blob_id, decode(i.sha256, 'hex'),
             i.size_bytes, i.content_type, h.source_url, i.final_url, i.bytes_status, clock_timestamp(),
             clock_timestamp() + make_interval(secs => case when i.outcome = 'FAILED' then ${evidenceRetentionMs / 1000}::float8
                                                            else ${artifactRetentionMs / 1000}::float8 end)
      from held h join input i on i.id = h.id join blob b on b.job_id = h.id
      order by h.caller_id, b.blob_id, i.id
      on conflict (caller_id, blob_id) do update set state = artifacts.state
      returning id, caller_id, blob_id
    )`;
}
