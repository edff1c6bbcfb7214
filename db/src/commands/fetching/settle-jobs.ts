import { localFailure } from "@keble-scraper/contract";
import type { Tx } from "../../database.ts";
import { cacheAnswers } from "../../steps/cache-answers.ts";
import type { EndedJob } from "../../steps/ended-job.ts";
import { finishJobs } from "../../steps/finish-jobs.ts";
import { type BytesHolds, keepBytes } from "../../steps/keep-bytes.ts";
import { settleSideEffects } from "../../steps/settle-side-effects.ts";
import type { AttemptReport, SettleVerdict } from "./attempt-report.ts";
import { settleRecords } from "./settle-records.ts";

type SettleOptions = BytesHolds & {
  readonly abortGraceMs: number;
  readonly jobRetentionMs: number;
  /** Of the audit row that a quarantine writes; absent: the default. */
  readonly auditRetentionDays?: number;
  /** How long an answer stays in the cache; absent: 7 days. */
  readonly cacheRetentionMs?: number;
};

const CACHE_RETENTION_MS = 7 * 86_400_000;

/**
 * Settles 1 to 50 attempts in one statement, fenced row by row: every dependent row is selected from the jobs whose
 * token is still held, so a stale report writes nothing. Locks jobs by id, then blobs by hash, then artifacts, then
 * budgets, holds and quarantines, then what is cached, each by their key.
 *
 * A group without money, holds, quarantines and cached answers takes a statement that knows nothing of them, and whose fence lets no
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
  return !report.hasReservation && report.hold === null && report.quarantine === null && report.cache == null;
}

async function settleGroup(
  sql: Tx,
  reports: readonly AttemptReport[],
  options: SettleOptions,
  kind: "PLAIN" | "FULL",
): Promise<SettleVerdict[]> {
  const isFree = kind === "PLAIN" ? sql`and j.reserved_micros is null` : sql``;
  const sideEffects = kind === "PLAIN" ? sql`` : sql`${settleSideEffects(sql, options)},`;
  const { cacheRetentionMs = CACHE_RETENTION_MS } = options;
  const cached = reports.some((report) => report.cache != null)
    ? sql`${cacheAnswers(sql, reports, { cacheRetentionMs })},`
    : sql``;
  const rows = await sql<SettledRow[]>`
    with input as materialized (
      select * from ${settleRecords(sql, reports)}
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
    ${keepBytes(sql, options)},
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
    ${cached}
    ended as (
      select j.id, case when j.outcome = 'SUCCEEDED' then 'SUCCEEDED' else 'FAILED' end as status,
             case when j.outcome = 'SUCCEEDED' then jsonb_build_object('fetchedAt', rfc3339(j.now)) || j.result end as result,
             case when j.outcome = 'HANDED_BACK' then ${sql.json(localFailure("DEADLINE_EXCEEDED"))}::jsonb
                  when j.outcome = 'FAILED' then j.failure end as failure,
             case when j.outcome = 'SUCCEEDED' then j.artifact_id end as artifact_id,
             case when j.outcome = 'HANDED_BACK' then 1 else 0 end as uncounted, 0 as unnumbered, j.cost_micros
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
