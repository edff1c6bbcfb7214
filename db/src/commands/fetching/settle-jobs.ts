import { localFailure } from "@keble-scraper/contract";
import type { Tx } from "../../database.ts";
import type { EndedJob } from "../../steps/ended-job.ts";
import { finishJobs } from "../../steps/finish-jobs.ts";
import { toStorableJson } from "../../to-storable-text.ts";

/** Where bytes are: put under ids that the worker made, or seen there, AVAILABLE, so that the put was skipped. */
export type BytesPlace =
  | { readonly kind: "PUT"; readonly blobId: string; readonly generation: string }
  | { readonly kind: "SEEN"; readonly blobId: string };

/** Bytes that are durable in the store, and what the artifact's row says of them. */
export type StoredBytes = BytesPlace & {
  readonly sha256: string;
  readonly sizeBytes: number;
  readonly artifactId: string;
  readonly contentType: string | null;
  readonly finalUrl: string;
  readonly httpStatus: number;
};

/**
 * How an attempt ended. `next` is the worker's reading of the disposition; the database decides whether budget, routes
 * and deadline, as stored, allow it. `waitMs` is the horizon that the failure asked for, from now.
 */
export type AttemptReport = {
  readonly id: string;
  readonly token: string;
  readonly attemptId: string;
  readonly outcome: "SUCCEEDED" | "FAILED" | "HANDED_BACK";
  readonly httpStatus: number | null;
  readonly failure: object | null;
  /** How long the target asked us to wait; the failure's `retryAt` is written from it, by the database's clock. */
  readonly retryAfterMs: number | null;
  readonly bodyBytes: number;
  readonly wireBytes: number;
  readonly timings: Readonly<Record<string, number | null>>;
  readonly result: object | null;
  readonly bytes: StoredBytes | null;
  readonly next: "FINISH" | "RETRY" | "RETRY_NEXT_ROUTE";
  readonly waitMs: number;
};

/**
 * SETTLED: the attempt is recorded, and the job ended or is due again. BYTES_GONE: the blob that was seen is no longer
 * there; nothing was written, put the bytes and settle again under the same lease. STALE: the lease was lost, or this
 * very report had been committed before; nothing was written.
 */
export type SettleVerdict = {
  readonly token: string;
  readonly verdict: "SETTLED" | "BYTES_GONE" | "STALE";
  readonly ended: EndedJob | null;
};

type SettleOptions = { readonly abortGraceMs: number; readonly jobRetentionMs: number };

/**
 * Settles 1 to 50 attempts in one statement, fenced row by row: every dependent row is selected from the jobs whose
 * token is still held, so a stale report writes nothing. Locks jobs by id, then blobs by hash, then artifacts.
 */
export async function settleJobs(
  sql: Tx,
  reports: readonly AttemptReport[],
  options: SettleOptions,
): Promise<SettleVerdict[]> {
  const input = toStorableJson(reports.map(toInput));
  const rows = await sql<SettledRow[]>`
    with input as materialized (
      select * from jsonb_to_recordset(${sql.json(input)}) as x (
        id uuid, token uuid, attempt_id uuid, outcome text, http_status int, failure jsonb, retry_after_ms float8,
        body_bytes bigint, wire_bytes bigint, timings jsonb, result jsonb, next text, wait_ms float8,
        sha256 text, size_bytes bigint, artifact_id uuid, content_type text, final_url text, bytes_status int,
        bytes_kind text, blob_id uuid, generation text)
    ),
    held as materialized (
      select j.id, j.caller_id, j.attempt_number, j.lease_token, j.attempt_route, j.attempt_started_at, j.deadline_at,
             j.attempts_used, j.attempt_budget, j.route_index, cardinality(j.routes) as route_count,
             j.target ->> 'url' as source_url, clock_timestamp() as now
      from jobs j join input i on i.id = j.id
      where j.lease_token = i.token and j.lease_until > clock_timestamp()
        and j.deadline_at + make_interval(secs => ${options.abortGraceMs / 1000}) > clock_timestamp()
      order by j.id
      for update of j
    ),
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
      insert into artifacts (id, caller_id, blob_id, sha256, size_bytes, content_type, source_url, final_url, http_status, fetched_at)
      select distinct on (h.caller_id, b.blob_id) i.artifact_id, h.caller_id, b.blob_id, decode(i.sha256, 'hex'),
             i.size_bytes, i.content_type, h.source_url, i.final_url, i.bytes_status, clock_timestamp()
      from held h join input i on i.id = h.id join blob b on b.job_id = h.id
      order by h.caller_id, b.blob_id, i.id
      on conflict (caller_id, blob_id) where state = 'AVAILABLE' do update set state = artifacts.state
      returning id, caller_id, blob_id
    ),
    judged as materialized (
      select h.*, i.attempt_id, i.outcome, i.http_status, i.body_bytes, i.wire_bytes, i.timings, i.result,
             a.id as artifact_id, i.next,
             case when i.retry_after_ms is not null then i.failure || jsonb_build_object('retryAt',
                    rfc3339(ceil_ms(h.now + make_interval(secs => i.retry_after_ms / 1000))))
                  else i.failure end as failure,
             case when i.next = 'FINISH' then true
                  when i.outcome = 'HANDED_BACK' then h.due_at >= h.deadline_at
                  else h.attempts_used >= h.attempt_budget
                    or (i.next = 'RETRY_NEXT_ROUTE' and h.route_index + 1 >= h.route_count)
                    or h.due_at >= h.deadline_at end as is_over
      from (select h.*, ceil_ms(h.now + make_interval(secs => i.wait_ms / 1000)) as due_at
            from held h join input i on i.id = h.id) h
      join input i on i.id = h.id
      left join blob b on b.job_id = h.id
      left join artifact a on a.caller_id = h.caller_id and a.blob_id = b.blob_id
      where i.bytes_kind is null or a.id is not null
    ),
    recorded as (
      insert into attempts (id, job_id, outcome, ordinal, lease_token, route, http_status, failure, body_bytes, wire_bytes,
        timings, started_at, finished_at)
      select j.attempt_id, j.id, j.outcome, j.attempt_number, j.lease_token, j.attempt_route, j.http_status,
             j.failure, j.body_bytes, j.wire_bytes, j.timings, j.attempt_started_at, j.now
      from judged j
    ),
    ended as (
      select j.id, case when j.outcome = 'SUCCEEDED' then 'SUCCEEDED' else 'FAILED' end as status,
             case when j.outcome = 'SUCCEEDED' then j.result || jsonb_build_object('fetchedAt', rfc3339(clock_timestamp())) end as result,
             case when j.outcome = 'HANDED_BACK' then ${sql.json(localFailure("DEADLINE_EXCEEDED"))}::jsonb
                  when j.outcome = 'FAILED' then j.failure end as failure,
             j.artifact_id, case when j.outcome = 'HANDED_BACK' then 1 else 0 end as uncounted, 0 as unnumbered
      from judged j where j.is_over
    ),
    requeued as (
      update jobs j
      set status = 'QUEUED', lease_token = null, lease_until = null, suspected_at = null, due_at = g.due_at,
          attempts_used = j.attempts_used - case when g.outcome = 'HANDED_BACK' then 1 else 0 end,
          route_index = j.route_index + case when g.next = 'RETRY_NEXT_ROUTE' then 1 else 0 end
      from judged g
      where j.id = g.id and not g.is_over
      returning j.id
    ),
    ${finishJobs(sql, options)}
    select i.token,
           case when h.id is null then 'STALE' when g.id is null then 'BYTES_GONE' else 'SETTLED' end as verdict,
           f.id, f.caller_id, f.status, f.event_id, f.event_state
    from input i
    left join held h on h.id = i.id and h.lease_token = i.token
    left join judged g on g.id = h.id
    left join finished f on f.id = h.id`;
  return rows.map(toVerdict);
}

type SettledRow = {
  token: string;
  verdict: SettleVerdict["verdict"];
  id: string | null;
  caller_id: string | null;
  status: EndedJob["status"] | null;
  event_id: string | null;
  event_state: EndedJob["eventState"];
};

function toVerdict(row: SettledRow): SettleVerdict {
  const ended =
    row.id === null || row.caller_id === null || row.status === null
      ? null
      : { id: row.id, callerId: row.caller_id, status: row.status, eventId: row.event_id, eventState: row.event_state };
  return { token: row.token, verdict: row.verdict, ended };
}

function toInput(report: AttemptReport) {
  const { bytes } = report;
  return {
    id: report.id,
    token: report.token,
    attempt_id: report.attemptId,
    outcome: report.outcome,
    http_status: report.httpStatus,
    failure: report.failure,
    retry_after_ms: report.retryAfterMs,
    body_bytes: report.bodyBytes,
    wire_bytes: report.wireBytes,
    timings: report.timings,
    result: report.result,
    next: report.next,
    wait_ms: report.waitMs,
    sha256: bytes?.sha256 ?? null,
    size_bytes: bytes?.sizeBytes ?? null,
    artifact_id: bytes?.artifactId ?? null,
    content_type: bytes?.contentType ?? null,
    final_url: bytes?.finalUrl ?? null,
    bytes_status: bytes?.httpStatus ?? null,
    bytes_kind: bytes?.kind ?? null,
    blob_id: bytes?.blobId ?? null,
    generation: bytes?.kind === "PUT" ? bytes.generation : null,
  };
}
