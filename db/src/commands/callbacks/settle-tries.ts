import type { DeadLetterReason, DeliveryState } from "@keble-scraper/contract";
import type { Tx } from "../../database.ts";
import { toStorableJson } from "../../to-storable-text.ts";
import { DELIVERY_WAIT_MS_MAX, type SettleClocks, type TryReport, type TryVerdict } from "./try-report.ts";

/**
 * The one statement that ends tries. The delivery's end is its event's, unless the event has ended before (a replay of a
 * delivered event); a delivered event and its job get their expiry here and nowhere else.
 */
export async function settleTries(sql: Tx, reports: readonly TryReport[], clocks: SettleClocks): Promise<TryVerdict[]> {
  if (reports.length === 0) return [];
  const rows = await sql<SettledRow[]>`
    with input as materialized (
      select * from jsonb_to_recordset(${sql.json(toStorableJson(reports.map(toInput)))}) as x (
        id uuid, token uuid, "tryId" uuid, outcome text, "httpStatus" int, failure jsonb, "latencyMs" int, url text, next text,
        "backoffMs" float8, "retryAfterMs" float8)
    ),
    held as materialized (
      select d.id, d.event_id, d.endpoint_id, d.lease_token, d.attempts_used, d.attempt_budget, d.try_started_at
      from callback_deliveries d join input i on i.id = d.id
      where d.lease_token = i.token and d.lease_until > clock_timestamp()
      order by d.id
      for update of d
    ),
    judged as materialized (
      select h.*, i."tryId" as try_id, i.outcome, i."httpStatus" as http_status, i."latencyMs" as latency_ms,
             case when i.outcome = 'SUCCEEDED' then null
                  when ep.deleted_at is not null then 'ENDPOINT_DELETED'
                  when ep.disabled_at is not null then 'ENDPOINT_DISABLED'
                  when i.outcome = 'UNSENT' then null
                  when i.next = 'GONE' and ep.url = i.url then 'ENDPOINT_DISABLED'
                  when i.next = 'FORBIDDEN' and ep.url = i.url then 'TARGET_FORBIDDEN'
                  when h.attempts_used >= h.attempt_budget then 'BUDGET_SPENT' end as reason,
             case when i."retryAfterMs" is null then i.failure
                  else i.failure || jsonb_build_object('retryAt', rfc3339(${after(sql, sql`i."retryAfterMs"`)})) end as failure,
             ${after(sql, sql`greatest(i."backoffMs", i."retryAfterMs")`)} as due_at
      from held h join input i on i.id = h.id join callback_endpoints ep on ep.id = h.endpoint_id
    ),
    settled as (
      update callback_deliveries d
      set state = case when j.outcome = 'SUCCEEDED' then 'DELIVERED' when j.reason is null then 'PENDING' else 'DEAD_LETTER' end,
          attempts_used = d.attempts_used - case when j.outcome = 'UNSENT' then 1 else 0 end,
          lease_token = null, lease_until = null, dead_letter_reason = j.reason,
          due_at = case when j.outcome = 'SUCCEEDED' or j.reason is not null then d.due_at else j.due_at end,
          ended_at = case when j.outcome = 'SUCCEEDED' or j.reason is not null then clock_timestamp() end
      from judged j
      where d.id = j.id
      returning d.id, d.event_id, d.state, d.dead_letter_reason, d.due_at
    ),
    recorded as (
      insert into callback_tries (id, delivery_id, outcome, ordinal, lease_token, http_status, failure, latency_ms, started_at, ended_at)
      select j.try_id, j.id, j.outcome, j.attempts_used, j.lease_token, j.http_status, j.failure, j.latency_ms,
             j.try_started_at, clock_timestamp()
      from judged j where j.outcome <> 'UNSENT'
    ),
    event as (
      update callback_events e
      set state = s.state, dead_letter_reason = s.dead_letter_reason,
          ended_at = case when s.state <> 'PENDING' then clock_timestamp() end,
          expires_at = case when s.state = 'DELIVERED'
            then clock_timestamp() + make_interval(secs => ${clocks.eventRetentionMs / 1000}) end
      from settled s
      where e.id = s.event_id and e.state = 'LEASED'
      returning e.job_id, e.state
    ),
    job as (
      update jobs j set expires_at = clock_timestamp() + make_interval(secs => ${clocks.jobRetentionMs / 1000})
      from event e
      where j.id = e.job_id and e.state = 'DELIVERED'
    )
    select i.token, s.state, s.dead_letter_reason, s.due_at,
           exists (select 1 from callback_deliveries d where d.endpoint_id = h.endpoint_id and d.state = 'PENDING'
                     and d.due_at <= statement_timestamp()) as more_due
    from input i
    left join held h on h.id = i.id and h.lease_token = i.token
    left join settled s on s.id = h.id`;
  return rows.map(toVerdict);
}

/** The database's time in so many milliseconds. */
function after(sql: Tx, ms: ReturnType<Tx>) {
  return sql`ceil_ms(clock_timestamp() + make_interval(secs => ${ms} / 1000))`;
}

/** JSON has no Infinity, and a wait has a cap. */
function toInput(report: TryReport) {
  const { backoffMs, retryAfterMs } = report;
  return {
    ...report,
    backoffMs: Math.min(backoffMs, DELIVERY_WAIT_MS_MAX),
    retryAfterMs: retryAfterMs === null ? null : Math.min(retryAfterMs, DELIVERY_WAIT_MS_MAX),
  };
}

type SettledRow = {
  token: string;
  state: DeliveryState | null;
  dead_letter_reason: DeadLetterReason | null;
  due_at: Date | null;
  more_due: boolean;
};

function toVerdict(row: SettledRow): TryVerdict {
  if (row.state === null || row.due_at === null) return { token: row.token, verdict: "STALE" };
  return {
    token: row.token,
    verdict: "SETTLED",
    state: row.state,
    deadLetterReason: row.dead_letter_reason,
    dueAt: row.due_at,
    moreDue: row.more_due,
  };
}
