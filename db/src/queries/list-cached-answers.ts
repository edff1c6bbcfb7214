import type { Tx } from "../database.ts";

/** The cache's namespace of answers that all callers share; every other one is a caller's id. */
export const SHARED_CACHE = "";

/** Where to look: a job's key (hex) under its caller's id or `SHARED_CACHE`. */
export type CachePlace = { readonly key: string; readonly callerId: string };

/** A stored answer, as its row says. */
export type CachedAnswer = CachePlace & {
  /** When its target last vouched for it, epoch milliseconds: names this very answer, since each next one's is greater. */
  readonly validatedAtMs: number;
  /** By the database's clock. */
  readonly ageMs: number;
  readonly sizeBytes: number;
  /** False for a mark that the answers of this key are each caller's own: nothing to take, and no reason to wait for others. */
  readonly isAnswer: boolean;
  /** The Content-Type that was declared; null: none. */
  readonly declaredType: string | null;
  readonly etag: string | null;
  readonly lastModified: string | null;
};

/** Who fetches a key right now, and for how much longer its lease stands. */
export type CacheFlight = CachePlace & { readonly leaseToken: string; readonly leaseMs: number };

/**
 * What is stored and what is under way at these places, in one snapshot: a flight ends in the statement that writes its
 * answer, so no answer and a flight together mean that the answer is still to come.
 */
export async function listCachedAnswers(
  sql: Tx,
  places: readonly CachePlace[],
): Promise<{ answers: CachedAnswer[]; flights: CacheFlight[] }> {
  if (places.length === 0) return { answers: [], flights: [] };
  const rows = await sql<FoundRow[]>`
    select p.key, p.caller_id, e.age_ms, e.validated_at_ms, e.size_bytes, e.is_answer, e.declared_type, e.etag, e.last_modified,
           f.lease_token, f.lease_ms
    from (select distinct key, caller_id from unnest(${places.map((place) => place.key)}::text[], ${places.map((place) => place.callerId)}::text[])
          as p (key, caller_id)) p
    left join lateral (
      select extract(epoch from clock_timestamp() - e.validated_at)::float8 * 1000 as age_ms,
             (extract(epoch from e.validated_at) * 1000)::float8 as validated_at_ms, e.size_bytes::float8 as size_bytes,
             jsonb_typeof(e.result) = 'object' as is_answer, e.result -> 'contentType' ->> 'declared' as declared_type,
             e.etag, e.last_modified
      from cache_entries e
      where e.key = decode(p.key, 'hex') and e.caller_id = p.caller_id and e.expires_at > statement_timestamp()
    ) e on true
    left join lateral (
      select f.lease_token, extract(epoch from j.lease_until - clock_timestamp())::float8 * 1000 as lease_ms
      from cache_flights f
      join jobs j on j.id = f.job_id and j.lease_token = f.lease_token and j.lease_until > statement_timestamp()
      where f.key = decode(p.key, 'hex') and f.caller_id = p.caller_id
    ) f on true`;
  return { answers: rows.flatMap(toAnswer), flights: rows.flatMap(toFlight) };
}

type FoundRow = {
  key: string;
  caller_id: string;
  age_ms: number;
  validated_at_ms: number | null;
  size_bytes: number;
  is_answer: boolean;
  declared_type: string | null;
  etag: string | null;
  last_modified: string | null;
  lease_token: string | null;
  lease_ms: number;
};

function toAnswer(row: FoundRow): CachedAnswer[] {
  if (row.validated_at_ms === null) return [];
  return [
    {
      key: row.key,
      callerId: row.caller_id,
      validatedAtMs: row.validated_at_ms,
      ageMs: row.age_ms,
      sizeBytes: row.size_bytes,
      isAnswer: row.is_answer,
      declaredType: row.declared_type,
      etag: row.etag,
      lastModified: row.last_modified,
    },
  ];
}

function toFlight(row: FoundRow): CacheFlight[] {
  if (row.lease_token === null) return [];
  return [{ key: row.key, callerId: row.caller_id, leaseToken: row.lease_token, leaseMs: row.lease_ms }];
}
