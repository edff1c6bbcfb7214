import type { Tx } from "../../database.ts";
import type { CachedAnswer } from "../../queries/list-cached-answers.ts";
import type { EndedJob } from "../../steps/ended-job.ts";
import { finishJobs } from "../../steps/finish-jobs.ts";
import type { HeldLease } from "./renew-leases.ts";

/** A claimed job and the stored answer that it takes, as it was listed. */
export type CacheHit = HeldLease & {
  readonly answer: Pick<CachedAnswer, "key" | "callerId" | "validatedAtMs">;
  /** The oldest answer that will do, from when its target last vouched for it. */
  readonly freshnessMs: number;
};

/**
 * SETTLED: the job ended with the stored answer. GONE: the answer was replaced, has become too old, or its bytes are gone; then
 * it was dropped. Nothing else was written, look again. STALE: the lease was lost; nothing was written.
 */
export type CacheVerdict = {
  readonly token: string;
  readonly verdict: "SETTLED" | "GONE" | "STALE";
  readonly ended: EndedJob | null;
  /** Null: the job did not end. */
  readonly ageSeconds: number | null;
};

/**
 * Ends 1 to 50 jobs with stored answers, in one statement, fenced row by row: SUCCEEDED, the attempt given back, no line
 * in the ledger, no cost. The bytes' blob, then its artifact, are locked and seen AVAILABLE by the statement, so a deletion
 * that came first is waited for and seen, and one that comes later finds the job's hold. An answer of another caller
 * becomes an artifact of the job's own caller, over the same blob. Locks jobs by id, then blobs by id, then artifacts;
 * answers are not locked but to drop them, and never waited for.
 */
export async function finishFromCache(
  sql: Tx,
  hits: readonly CacheHit[],
  options: { readonly abortGraceMs: number; readonly jobRetentionMs: number; readonly artifactRetentionMs: number },
): Promise<CacheVerdict[]> {
  const rows = await sql<FinishedRow[]>`
    with input as materialized (
      select * from jsonb_to_recordset(${sql.json(hits.map(toInput))}) as i (
        id uuid, token uuid, key text, namespace text, validated_at_ms float8, freshness_ms float8)
    ),
    held as materialized (
      select j.id, j.caller_id, j.lease_token, j.max_body_bytes, j.cache_key, j.target ->> 'url' as source_url, clock_timestamp() as now,
             i.namespace, i.validated_at_ms, i.freshness_ms
      from jobs j join input i on i.id = j.id
      where j.lease_token = i.token and j.lease_until > clock_timestamp() and j.cache_key = decode(i.key, 'hex')
        and j.deadline_at + make_interval(secs => ${options.abortGraceMs / 1000}) > clock_timestamp()
      order by j.id
      for update of j
    ),
    answer as materialized (
      select h.id as job_id, h.caller_id, h.source_url, e.result, e.artifact_id, a.blob_id,
             floor(extract(epoch from greatest(h.now - e.validated_at, interval '0')))::int as age_seconds
      from held h
      join cache_entries e on e.key = h.cache_key and e.caller_id = h.namespace
      left join artifacts a on a.id = e.artifact_id
      where e.caller_id in ('', h.caller_id) and (extract(epoch from e.validated_at) * 1000)::float8 = h.validated_at_ms
        and e.validated_at + make_interval(secs => h.freshness_ms / 1000) > h.now and e.expires_at > h.now
        and e.size_bytes <= h.max_body_bytes and jsonb_typeof(e.result) = 'object'
    ),
    blob as materialized (
      select b.id
      from (select distinct a.blob_id from answer a where a.blob_id is not null order by 1) s
      cross join lateral (
        select b.id from blobs b where b.id = s.blob_id and b.state = 'AVAILABLE' for key share
      ) b
    ),
    -- The blob is locked by now: the artifact's look comes after it, because it reads the blob's id.
    source as materialized (
      select s.job_id, s.caller_id, s.source_url, a.*
      from answer s
      join blob b on b.id = s.blob_id
      cross join lateral (
        select a.id, a.caller_id as owner_id, a.blob_id, a.sha256, a.size_bytes, a.content_type, a.final_url, a.http_status, a.fetched_at
        from artifacts a where a.id = s.artifact_id and a.blob_id = b.id and a.state = 'AVAILABLE' for key share
      ) a
    ),
    mine as materialized (
      select s.job_id, a.id
      from source s
      cross join lateral (
        select a.id from artifacts a
        where a.blob_id = s.blob_id and a.caller_id = s.caller_id and a.state = 'AVAILABLE' for key share
      ) a
    ),
    made as (
      insert into artifacts (id, caller_id, blob_id, sha256, size_bytes, content_type, source_url, final_url, http_status, fetched_at, review_at)
      select distinct on (s.caller_id, s.blob_id) uuid_v7(), s.caller_id, s.blob_id, s.sha256, s.size_bytes, s.content_type, s.source_url,
             s.final_url, s.http_status, s.fetched_at,
             clock_timestamp() + make_interval(secs => ${options.artifactRetentionMs / 1000})
      from source s
      where not exists (select 1 from mine m where m.job_id = s.job_id)
      order by s.caller_id, s.blob_id, s.job_id
      on conflict (caller_id, blob_id) do update set state = artifacts.state
      returning id, caller_id, blob_id
    ),
    taken as materialized (
      select a.job_id, a.result, a.age_seconds, coalesce(mine.id, made.id) as artifact_id
      from answer a
      left join source s on s.job_id = a.job_id
      left join mine on mine.job_id = s.job_id
      left join made on made.caller_id = s.caller_id and made.blob_id = s.blob_id
      where a.artifact_id is null or coalesce(mine.id, made.id) is not null
    ),
    dropped as (
      delete from cache_entries e
      using (
        select c.key, c.caller_id, c.artifact_id
        from (select distinct h.cache_key, h.namespace, a.artifact_id from held h join answer a on a.job_id = h.id
              where a.artifact_id is not null and not exists (select 1 from taken t where t.job_id = h.id)) g
        join cache_entries c on c.key = g.cache_key and c.caller_id = g.namespace and c.artifact_id = g.artifact_id
        for update of c skip locked
      ) d
      where e.key = d.key and e.caller_id = d.caller_id and e.artifact_id = d.artifact_id
    ),
    ended as (
      select t.job_id as id, 'SUCCEEDED' as status,
             t.result || jsonb_build_object('fromCache', true, 'ageSeconds', t.age_seconds) as result, null::jsonb as failure,
             t.artifact_id, 1 as uncounted, 1 as unnumbered, 0 as cost_micros
      from taken t
    ),
    ${finishJobs(sql, options)}
    select i.token, case when h.id is null then 'STALE' when f.id is null then 'GONE' else 'SETTLED' end as verdict,
           t.age_seconds, f.id, f.caller_id, f.status, f.event_id, f.event_state
    from input i
    left join held h on h.id = i.id and h.lease_token = i.token
    left join finished f on f.id = h.id
    left join taken t on t.job_id = f.id`;
  return rows.map(toVerdict);
}

function toInput({ id, token, answer, freshnessMs }: CacheHit) {
  const { key, callerId, validatedAtMs } = answer;
  return { id, token, key, namespace: callerId, validated_at_ms: validatedAtMs, freshness_ms: freshnessMs };
}

type FinishedRow = {
  token: string;
  verdict: CacheVerdict["verdict"];
  age_seconds: number | null;
  id: string | null;
  caller_id: string | null;
  status: EndedJob["status"] | null;
  event_id: string | null;
  event_state: EndedJob["eventState"];
};

function toVerdict({ token, verdict, age_seconds: ageSeconds, ...row }: FinishedRow): CacheVerdict {
  if (row.id === null || row.caller_id === null || row.status === null) {
    return { token, verdict, ended: null, ageSeconds: null };
  }
  const { id, caller_id: callerId, status, event_id: eventId, event_state: eventState } = row;
  return { token, verdict, ended: { id, callerId, status, eventId, eventState }, ageSeconds };
}
