import { localFailure } from "@keble-scraper/contract";
import type { Tx } from "../../database.ts";
import type { EndedJob } from "../../steps/ended-job.ts";
import { finishJobs } from "../../steps/finish-jobs.ts";
import { settleSideEffects } from "../../steps/settle-side-effects.ts";
import { toStorableJson } from "../../to-storable-text.ts";
import type { AttemptReport, SettleVerdict } from "./attempt-report.ts";

type SettleOptions = {
  readonly abortGraceMs: number;
  readonly jobRetentionMs: number;
  /** Of the audit row that a quarantine writes; absent: the default. */
  readonly auditRetentionDays?: number;
};

/**
 * Settles 1 to 50 attempts in one statement, fenced row by row: every dependent row is selected from the jobs whose
 * token is still held, so a stale report writes nothing. Locks jobs by id, then blobs by hash, then artifacts, then
 * budgets, holds and quarantines, each by their key.
 *
 * A group without money, holds and quarantines takes a statement that knows nothing of them, and whose fence lets no
 * reservation through. What it left is settled again in full, so a report that forgot its reservation loses nothing.
 */
export async function settleJobs(
  sql: Tx,
  reports: readonly AttemptReport[],
  options: SettleOptions,
): Promise<SettleVerdict[]> {
  if (!reports.every(isPlain)) return settleGroup(sql, reports, options, "FULL");
  const verdicts = await settleGroup(sql, reports, options, "PLAIN");
  const left = new Set(verdicts.flatMap((row) => (row.verdict === "STALE" ? [row.token] : [])));
  if (left.size === 0) return verdicts;
  const again = reports.filter((report) => left.has(report.token));
  const settled = await settleGroup(sql, again, options, "FULL");
  return [...verdicts.filter((row) => !left.has(row.token)), ...settled];
}

function isPlain(report: AttemptReport): boolean {
  return !report.hasReservation && report.hold === null && report.quarantine === null;
}

async function settleGroup(
  sql: Tx,
  reports: readonly AttemptReport[],
  options: SettleOptions,
  kind: "PLAIN" | "FULL",
): Promise<SettleVerdict[]> {
  const input = toStorableJson(reports.map(toInput));
  const isFree = kind === "PLAIN" ? sql`and j.reserved_micros is null` : sql``;
  const sideEffects = kind === "PLAIN" ? sql`` : sql`${settleSideEffects(sql, options)},`;
  const rows = await sql<SettledRow[]>`
    with input as materialized (
      select * from jsonb_to_recordset(${sql.json(input)}) as x (
        id uuid, token uuid, attempt_id uuid, outcome text, http_status int, failure jsonb, retry_after_ms float8,
        body_bytes bigint, wire_bytes bigint, timings jsonb, result jsonb, next text, wait_ms float8,
        sha256 text, size_bytes bigint, artifact_id uuid, content_type text, final_url text, bytes_status int,
        bytes_kind text, blob_id uuid, generation text, cost_micros bigint, provider_request_id text,
        hold_key text, hold_ms float8, quarantine_reason text, native_code text, quarantine_ms float8)
    ),
    held as materialized (
      select j.id, j.caller_id, j.attempt_number, j.lease_token, j.attempt_route, j.attempt_started_at, j.deadline_at,
             j.attempts_used, j.attempt_budget, cardinality(j.routes) as route_count, j.reserved_on, j.reserved_micros,
             array_position(j.routes, j.attempt_route) as route_place,
             j.target ->> 'url' as source_url, clock_timestamp() as now
      from jobs j join input i on i.id = j.id
      where j.lease_token = i.token and j.lease_until > clock_timestamp()
        and j.deadline_at + make_interval(secs => ${options.abortGraceMs / 1000}) > clock_timestamp() ${isFree}
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
             a.id as artifact_id, i.next, i.provider_request_id,
             case when h.reserved_micros is null then 0
                  when i.outcome = 'HANDED_BACK' or i.cost_micros is null then h.reserved_micros
                  else i.cost_micros end as cost_micros,
             case when i.retry_after_ms is not null then i.failure || jsonb_build_object('retryAt',
                    rfc3339(ceil_ms(h.now + make_interval(secs => i.retry_after_ms / 1000))))
                  else i.failure end as failure,
             case when i.next = 'FINISH' then true
                  when i.outcome = 'HANDED_BACK' then h.due_at >= h.deadline_at
                  else h.attempts_used >= h.attempt_budget
                    or (i.next = 'RETRY_NEXT_ROUTE' and h.route_place >= h.route_count)
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
        timings, evidence_artifact_id, cost_reserved_micros, cost_micros, provider_request_id, started_at, finished_at)
      select j.attempt_id, j.id, j.outcome, j.attempt_number, j.lease_token, j.attempt_route, j.http_status,
             j.failure, j.body_bytes, j.wire_bytes, j.timings, case when j.outcome = 'FAILED' then j.artifact_id end,
             coalesce(j.reserved_micros, 0), j.cost_micros, j.provider_request_id, j.attempt_started_at, j.now
      from judged j
    ),
    ${sideEffects}
    ended as (
      select j.id, case when j.outcome = 'SUCCEEDED' then 'SUCCEEDED' else 'FAILED' end as status,
             case when j.outcome = 'SUCCEEDED' then j.result || jsonb_build_object('fetchedAt', rfc3339(clock_timestamp())) end as result,
             case when j.outcome = 'HANDED_BACK' then ${sql.json(localFailure("DEADLINE_EXCEEDED"))}::jsonb
                  when j.outcome = 'FAILED' then j.failure end as failure,
             case when j.outcome = 'SUCCEEDED' then j.artifact_id end as artifact_id, case when j.outcome = 'HANDED_BACK' then 1 else 0 end as uncounted, 0 as unnumbered, j.cost_micros
      from judged j where j.is_over
    ),
    requeued as (
      update jobs j
      set status = 'QUEUED', lease_token = null, lease_until = null, suspected_at = null, due_at = g.due_at,
          attempts_used = j.attempts_used - case when g.outcome = 'HANDED_BACK' then 1 else 0 end,
          route_index = case when g.next = 'RETRY_NEXT_ROUTE' then g.route_place else j.route_index end,
          reserved_micros = null, reserved_on = null, booking = null, cost_micros = j.cost_micros + g.cost_micros
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
    cost_micros: report.costMicros,
    provider_request_id: report.providerRequestId,
    hold_key: report.hold?.hostKey ?? null,
    hold_ms: report.hold?.ms ?? null,
    quarantine_reason: report.quarantine?.reason ?? null,
    native_code: report.quarantine?.nativeCode ?? null,
    // The table refuses one that ends as it begins.
    quarantine_ms: report.quarantine?.forMs == null ? null : Math.max(1_000, report.quarantine.forMs),
  };
}
