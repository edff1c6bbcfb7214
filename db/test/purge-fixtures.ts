import { type PurgeAnswer, type PurgeBatch, purgeBatch } from "../src/commands/retention/index.ts";
import type { Database } from "../src/database.ts";

/** A batch as the defaults have it. */
export const BATCH = { batch: 500, rowsPerMinute: 1_000, auditDays: 400, since: null } as const;

/** Purges one batch. */
export function purge(
  database: Database,
  kind: PurgeBatch["kind"],
  overrides: Partial<PurgeBatch> = {},
): Promise<PurgeAnswer> {
  return purgeBatch(database.commands, { ...BATCH, kind, ...overrides });
}

/** How many rows one batch deleted. */
export async function purged(
  database: Database,
  kind: PurgeBatch["kind"],
  overrides: Partial<PurgeBatch> = {},
): Promise<number> {
  const answer = await purge(database, kind, overrides);
  if (answer.verdict !== "PURGED") throw new Error(`not purged: ${answer.verdict}`);
  return answer.rows;
}

/** Lets the minute that runs count as over: what it purged no longer counts. */
export async function passMinute(database: Database): Promise<void> {
  await database.commands`update purge_turn set minute = minute - interval '1 minute'`;
}

/** Resolves with so many seconds of the minute ahead at the least, so that what follows is of one minute. */
export async function untilMinuteHas(database: Database, seconds: number): Promise<void> {
  await database.commands`
    select case when extract(second from clock_timestamp()) > ${60 - seconds}::float8
                then pg_sleep_until(date_trunc('minute', clock_timestamp()) + interval '1 minute') end`;
}

/**
 * Inserts cancelled jobs that expired a minute ago, each with so many attempts and, on demand, a delivered event. They
 * share one artifact. Returns nothing: tests count.
 */
export async function insertExpiredJobs(
  database: Database,
  options: {
    readonly count: number;
    readonly attempts: number;
    readonly callerId?: string;
    readonly endpointId?: string;
  },
): Promise<void> {
  const { count, attempts, callerId = "acme", endpointId = null } = options;
  const sql = database.commands;
  await sql`
    with made as (
      insert into jobs (id, caller_id, callback_endpoint_id, status, request_sha256, target, host_key, transport, routes, freshness,
        accept, robots, labels, attempt_budget, attempts_used, attempt_number, max_body_bytes, cost_cap_micros, created_at,
        due_at, deadline_at, finished_at, expires_at)
      select uuid_v7(), ${callerId}, ${endpointId}, 'CANCELLED', '\\x00', '{"url":"https://shop.example.com/p/1","method":"GET","headers":{}}',
             'shop.example.com', 'HTTP', '{DIRECT}', 'NO_CACHE', 'SUCCESS_ONLY', 'RESPECT', '{}', 3, ${Math.min(attempts, 3)}, ${attempts}, 1000, 0, t.at,
             t.at, t.at + interval '5 min', t.at, clock_timestamp() - interval '1 min' - make_interval(secs => g::float8 / 1000)
      from generate_series(1, ${count}::int) g, (select clock_timestamp() - interval '91 days' as at) t
      returning id, callback_endpoint_id, finished_at
    ),
    ledger as (
      insert into attempts (id, job_id, outcome, ordinal, lease_token, route, started_at, finished_at)
      select uuid_v7(), m.id, 'CANCELLED', n, gen_random_uuid(), 'DIRECT', m.finished_at, m.finished_at
      from made m cross join generate_series(1, ${attempts}::int) n
    ),
    event as (
      insert into callback_events (id, job_id, endpoint_id, caller_id, state, type, occurred_at, ended_at, expires_at)
      select uuid_v7(), m.id, m.callback_endpoint_id, ${callerId}, 'DELIVERED', 'job.cancelled', m.finished_at, m.finished_at,
             clock_timestamp() - interval '1 min'
      from made m where m.callback_endpoint_id is not null
      returning id, endpoint_id
    )
    insert into callback_deliveries (id, event_id, endpoint_id, state, attempt_budget, attempts_used, due_at, ended_at)
    select uuid_v7(), e.id, e.endpoint_id, 'DELIVERED', 3, 1, clock_timestamp(), clock_timestamp() from event e`;
}

/** Rows of a table. */
export async function countRows(database: Database, table: string): Promise<number> {
  const [row] = await database.commands<[{ count: number }]>`
    select count(*)::int as count from ${database.commands(table)}`;
  return row.count;
}
