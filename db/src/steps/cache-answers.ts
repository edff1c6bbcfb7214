import type { AttemptReport } from "../commands/fetching/attempt-report.ts";
import type { Fragment, Tx } from "../database.ts";

/** How long a mark says that the answers of a key are each caller's own: then sharing is tried again. */
const OWN_MARK_SECONDS = 3_600;

/**
 * What settled answers leave in the cache, as a part of a settle's WITH list, which it reads `judged` of: each writes its
 * entry, newer ones alone replace older ones, and ends its flight. Only a final 2xx enters; everything else leaves what is
 * there as it is. An answer that turned out to be its caller's own, of a key that callers share, leaves a mark there: the
 * next callers need not wait for one another.
 *
 * Locks entries in the order of their keys, after the artifacts; a flight that is locked is somebody's who takes it over.
 */
export function cacheAnswers(
  sql: Tx,
  reports: readonly AttemptReport[],
  { cacheRetentionMs }: { readonly cacheRetentionMs: number },
): Fragment {
  return sql`
    caching as materialized (
      select g.id as job_id, g.caller_id, g.lease_token, g.artifact_id, g.now, decode(c.key, 'hex') as key, c.is_shared, c.marks_own,
             c.etag, c.last_modified, a.size_bytes,
             (jsonb_build_object('fetchedAt', rfc3339(g.now)) || g.result || '{"fromCache": false}') - 'ageSeconds' as result
      from judged g
      join jsonb_to_recordset(${sql.json(reports.flatMap(toInput))}) as c (
        token uuid, key text, is_shared boolean, marks_own boolean, etag text, last_modified text) on c.token = g.lease_token
      left join (select b.job_id, i.size_bytes from blob b join input i on i.id = b.job_id) a on a.job_id = g.id
      where g.outcome = 'SUCCEEDED' and (g.result ->> 'httpStatus')::int between 200 and 299
    ),
    cached as (
      insert into cache_entries as e (key, caller_id, artifact_id, result, size_bytes, etag, last_modified, validated_at, expires_at)
      select distinct on (n.key, n.caller_id) n.* from (
        select c.key, case when c.is_shared then '' else c.caller_id end as caller_id, c.artifact_id, c.result, coalesce(c.size_bytes, 0),
               c.etag, c.last_modified, c.now, c.now + make_interval(secs => ${cacheRetentionMs / 1000})
        from caching c
        union all
        select c.key, '', null, 'null'::jsonb, 0, null, null, c.now,
               c.now + make_interval(secs => least(${cacheRetentionMs / 1000}::float8, ${OWN_MARK_SECONDS}))
        from caching c where c.marks_own
      ) n
      order by n.key, n.caller_id, n.now desc, n.artifact_id
      on conflict (key, caller_id) do update
      set artifact_id = excluded.artifact_id, result = excluded.result, size_bytes = excluded.size_bytes, etag = excluded.etag,
          last_modified = excluded.last_modified, validated_at = excluded.validated_at, expires_at = excluded.expires_at
      where e.validated_at <= excluded.validated_at
    ),
    landed as (
      delete from cache_flights f
      using (select f.key, f.caller_id from caching c
             join cache_flights f on f.key = c.key and f.caller_id in ('', c.caller_id) and f.lease_token = c.lease_token
             for update of f skip locked) d
      where f.key = d.key and f.caller_id = d.caller_id
    )`;
}

function toInput({ token, cache }: AttemptReport) {
  if (cache == null) return [];
  const { key, isShared, marksOwn, etag, lastModified } = cache;
  return [{ token, key, is_shared: isShared, marks_own: marksOwn, etag, last_modified: lastModified }];
}
