import type { Sql, Tx } from "../../database.ts";
import { countQueuedJobs } from "../../queries/count-queued-jobs.ts";
import { toStorableJson } from "../../to-storable-text.ts";

/** A job as it is stored at submit. `deadlineSeconds` counts from the database's clock. */
export type NewJob = {
  readonly id: string;
  readonly idempotencyKey: string | null;
  /** SHA-256, hex, of the canonical JSON of the body as it was sent. */
  readonly requestSha256: string;
  readonly target: {
    readonly url: string;
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
  };
  /** What the target's rate, slots and holds are kept by. */
  readonly hostKey: string;
  readonly transport: string;
  readonly routes: readonly string[];
  readonly freshness: string;
  /** SHA-256, hex, of all that makes two answers the same; null or absent: the job takes and leaves nothing in the cache. */
  readonly cacheKey?: string | null;
  readonly accept: string;
  readonly contentTypes: readonly string[] | null;
  readonly robots: string;
  readonly capture: string | null;
  readonly egress: { readonly country?: string | undefined; readonly stickyKey?: string | undefined } | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly attemptBudget: number;
  readonly maxBodyBytes: number;
  readonly costCapMicros: number;
  readonly deadlineSeconds: number;
  readonly callbackEndpoint: string | null;
};

/** What became of each job of a submit, in order. `REPLAYED` names the job that the key made earlier. */
export type SubmitVerdict =
  | { readonly kind: "ACCEPTED"; readonly id: string; readonly createdAt: Date; readonly deadlineAt: Date }
  | { readonly kind: "REPLAYED"; readonly id: string }
  | { readonly kind: "IDEMPOTENCY_MISMATCH" }
  | { readonly kind: "UNKNOWN_CALLBACK_ENDPOINT" }
  | { readonly kind: "QUEUE_FULL" };

type Submit = {
  readonly callerId: string;
  readonly jobs: readonly NewJob[];
  /**
   * Null trusts the caller's estimate that the queue has room. A number makes the submit exact: it takes the caller's
   * submit lock, counts, and answers QUEUE_FULL for all jobs when they would not fit (none is accepted then).
   */
  readonly queuedMax: number | null;
};

/**
 * Accepts 1 to 1000 jobs of one caller in one transaction. Same key and body: the first job again, under any
 * concurrency, because the unique index decides and the reader comes second. Throws when the check for an earlier job
 * can't be made: nothing is accepted then.
 */
export async function submitJobs(sql: Sql, submit: Submit): Promise<SubmitVerdict[]> {
  if (submit.queuedMax === null) return insertJobs(sql, submit);
  const max = submit.queuedMax;
  return sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(hashtextextended('submit:' || ${submit.callerId}, 0))`;
    const keys = submit.jobs.flatMap((job) => job.idempotencyKey ?? []);
    const known = await tx<{ idempotency_key: string }[]>`
      select idempotency_key from jobs where caller_id = ${submit.callerId} and idempotency_key = any(${keys})`;
    const seen = new Set(known.map((row) => row.idempotency_key));
    const fresh = submit.jobs.filter((job) => job.idempotencyKey === null || !seen.has(job.idempotencyKey)).length;
    const queued = await countQueuedJobs(tx, submit.callerId, max);
    if (fresh > 0 && queued + fresh > max) return submit.jobs.map(() => ({ kind: "QUEUE_FULL" as const }));
    return insertJobs(tx, submit);
  });
}

type InsertedRow = { endpoint_found: boolean } & (
  | { id: string; created_at: Date; deadline_at: Date }
  | { id: null; created_at: null; deadline_at: null }
);

async function insertJobs(sql: Tx, { callerId, jobs }: Submit): Promise<SubmitVerdict[]> {
  const rows = toStorableJson(jobs.map((job, position) => ({ position, ...job })));
  const inserted = await sql<InsertedRow[]>`
    with input as (
      select * from jsonb_to_recordset(${sql.json(rows)}) as x (
        position int, id uuid, "idempotencyKey" text, "requestSha256" text, target jsonb, "hostKey" text, transport text,
        routes text[], freshness text, "cacheKey" text, accept text, "contentTypes" text[], robots text, capture text, egress jsonb, labels jsonb, "attemptBudget" smallint,
        "maxBodyBytes" bigint, "costCapMicros" bigint, "deadlineSeconds" int, "callbackEndpoint" text)
    ),
    resolved as materialized (
      select i.*, ep.id as endpoint_id, i."callbackEndpoint" is null or ep.id is not null as endpoint_found
      from input i
      left join callback_endpoints ep
        on ep.caller_id = ${callerId} and ep.name = i."callbackEndpoint" and ep.deleted_at is null
    ),
    accepted as (
      insert into jobs (id, caller_id, callback_endpoint_id, idempotency_key, request_sha256, target, host_key, transport,
        routes, freshness, cache_key, accept, content_types, robots, capture, egress, labels, attempt_budget, max_body_bytes, cost_cap_micros,
        created_at, due_at, deadline_at)
      select r.id, ${callerId}, r.endpoint_id, r."idempotencyKey", decode(r."requestSha256", 'hex'), r.target, r."hostKey",
        r.transport, r.routes, r.freshness, decode(r."cacheKey", 'hex'), r.accept, r."contentTypes", r.robots, r.capture, r.egress, r.labels, r."attemptBudget", r."maxBodyBytes",
        r."costCapMicros", date_trunc('milliseconds', t.now), date_trunc('milliseconds', t.now),
        date_trunc('milliseconds', t.now) + make_interval(secs => r."deadlineSeconds")
      from resolved r, (select clock_timestamp() as now) t
      where r.endpoint_found
      -- Keys in one order for all batches: two that share keys would else wait for each other.
      order by r."idempotencyKey", r.position
      on conflict (caller_id, idempotency_key) where idempotency_key is not null do nothing
      returning id, created_at, deadline_at
    )
    select r.position, a.id, a.created_at, a.deadline_at, r.endpoint_found
    from resolved r left join accepted a on a.id = r.id
    order by r.position`;
  const earlier = await findEarlierJobs(sql, callerId, jobs, inserted);
  const verdicts = inserted.map((row, position): SubmitVerdict | null => {
    if (row.id !== null) {
      return { kind: "ACCEPTED", id: row.id, createdAt: row.created_at, deadlineAt: row.deadline_at };
    }
    const job = jobs[position];
    const first = job?.idempotencyKey == null ? undefined : earlier.get(job.idempotencyKey);
    if (first !== undefined) {
      return first.request_sha256 === job?.requestSha256
        ? { kind: "REPLAYED", id: first.id }
        : { kind: "IDEMPOTENCY_MISMATCH" };
    }
    return row.endpoint_found ? null : { kind: "UNKNOWN_CALLBACK_ENDPOINT" };
  });
  // Refused by the index, yet gone when looked for: the earlier job was erased in between, and its key with it.
  const refused = jobs.filter((_, position) => verdicts[position] === null);
  const again = refused.length === 0 ? [] : await insertJobs(sql, { callerId, jobs: refused, queuedMax: null });
  return verdicts.map((verdict) => {
    const made = verdict ?? again.shift();
    if (made === undefined) throw new Error("a submit has fewer verdicts than jobs");
    return made;
  });
}

/** A separate statement, because the insert's snapshot can't see the row whose key refused it. */
async function findEarlierJobs(
  sql: Tx,
  callerId: string,
  jobs: readonly NewJob[],
  inserted: readonly { id: string | null }[],
): Promise<Map<string, { id: string; request_sha256: string }>> {
  const keys = jobs.flatMap((job, position) => (inserted[position]?.id == null ? (job.idempotencyKey ?? []) : []));
  if (keys.length === 0) return new Map();
  const rows = await sql<{ id: string; idempotency_key: string; request_sha256: string }[]>`
    select id, idempotency_key, encode(request_sha256, 'hex') as request_sha256
    from jobs where caller_id = ${callerId} and idempotency_key = any(${keys})`;
  return new Map(rows.map((row) => [row.idempotency_key, row]));
}
