import { reviewArtifacts } from "@keble-scraper/db/commands/artifacts";
import { expireJobs, recoverLeases } from "@keble-scraper/db/commands/fetching";
import { cancelJob, type NewJob } from "@keble-scraper/db/commands/intake";
import type { OriginReply } from "@keble-scraper/testkit";
import { afterAll, expect, test } from "vitest";
import { openFetchRig } from "./worker-fixtures.ts";

/** KEBLE_LONG=1 goes on for a minute. */
const LASTS_MS = process.env["KEBLE_LONG"] === "1" ? 60_000 : 3_000;
const KEYS = 12;
const CALLERS = ["acme", "globex", "initech"];
const UNFINISHED_MAX = 150;
const HOLD_MS = 200;
const TERMS = { jobRetentionMs: 1_000_000_000, abortGraceMs: 2_000, limit: 100 };

// A claim whose answer was lost with its connection comes back with its lease's end.
const rig = await openFetchRig({
  SCRAPER_FETCH_SLOTS: "30",
  SCRAPER_CACHE_SHARED: "on",
  SCRAPER_LEASE_SECONDS: "6",
  SCRAPER_CALLBACK_TIMEOUT_MS: "2000",
});
const { commands: sql } = rig.database;
afterAll(() => rig[Symbol.asyncDispose]());

const below = (count: number) => Math.floor(Math.random() * count);
const oneOf = <T>(list: readonly T[]): T => list[below(list.length)] as T;

/** Answers of every kind. Each fetch has a number, `own` are those that may be nobody's but their caller's. */
function openSite() {
  const own = new Set<string>();
  let fetches = 0;

  async function answer(key: number, reply: OriginReply): Promise<void> {
    fetches += 1;
    const number = String(fetches);
    await new Promise((resolve) => setTimeout(resolve, below(4) === 0 ? below(300) : 0));
    const [etag, turn] = [reply.request.headers["if-none-match"], below(12)];
    if (etag !== undefined && turn < 7) {
      await reply.send({ status: 304, reason: "Not Modified", headers: turn === 6 ? { ETag: '"other"' } : {} });
      return;
    }
    if (turn < 2) {
      await reply.send({ status: turn === 0 ? 404 : 503, reason: "No", body: "no" });
      return;
    }
    if (key % 3 === 0 || turn === 2) own.add(number);
    const cookie: Record<string, string> = own.has(number) ? { "Set-Cookie": `s=${number}` } : {};
    const validator: Record<string, string> = key % 2 === 0 ? { ETag: `"${number}"` } : {};
    const headers = { "Content-Type": "text/plain", "X-Number": number, ...cookie, ...validator };
    await reply.send({ headers, body: key % 4 === 1 ? "always the same" : `fetch ${number}` });
  }

  for (let key = 0; key < KEYS; key += 1) rig.origin.on(`/${key}`, (reply) => answer(key, reply));
  return { own };
}

async function submit(): Promise<void> {
  const [row] = await sql<{ count: number }[]>`select count(*)::int from jobs where finished_at is null`;
  if ((row?.count ?? 0) > UNFINISHED_MAX) return;
  const key = below(KEYS);
  const freshness = oneOf(["FIVE_MINUTES", "ONE_HOUR", "ONE_DAY", "NO_CACHE"] as const);
  const job: Partial<NewJob> = {
    freshness,
    cacheKey: freshness === "NO_CACHE" ? null : key.toString(16).padStart(64, "0"),
    accept: oneOf(["SUCCESS_ONLY", "SUCCESS_ONLY", "ANY_RESPONSE"]),
    attemptBudget: 1 + below(3),
    maxBodyBytes: below(10) === 0 ? 7 : 1_000_000,
    deadlineSeconds: below(8) === 0 ? 2 : 40,
  };
  await Promise.all([1, 2, 3].map(() => rig.submit(`/${key}`, job, oneOf(CALLERS))));
}

async function maintain(): Promise<void> {
  await recoverLeases(sql, TERMS);
  await expireJobs(sql, TERMS);
  await sql`update artifacts set review_at = clock_timestamp() where state = 'AVAILABLE' and random() < 0.3`;
  const holds = { artifactRetentionMs: HOLD_MS, evidenceRetentionMs: HOLD_MS, urlMs: 1_000, auditRetentionDays: 30 };
  await reviewArtifacts(sql, { ...holds, limit: 20 });
}

/** Lost leases, lost connections, cancelled jobs, and stored answers that go, grow old or expire. */
const MISHAPS: readonly (() => PromiseLike<unknown>)[] = [
  () => sql`
    select pg_terminate_backend(pid) from (
      select pid from pg_stat_activity where datname = current_database() and application_name <> 'test' order by random() limit 1) one`,
  () => sql`
    update jobs set lease_until = clock_timestamp()
    where id in (select id from jobs where lease_token is not null order by random() limit 1 for update skip locked)`,
  async () => {
    const [job] = await sql<{ id: string; caller_id: string }[]>`
      select id, caller_id from jobs where finished_at is null order by random() limit 1`;
    if (job !== undefined) await cancelJob(sql, { id: job.id, callerId: job.caller_id }, TERMS);
  },
  () =>
    sql`delete from cache_entries where ctid = any (array(select ctid from cache_entries order by random() limit 1))`,
  () => sql`
    update cache_entries set validated_at = clock_timestamp() - interval '3 hours' * random() where random() < 0.3`,
  () => sql`update cache_entries set expires_at = clock_timestamp() where random() < 0.3`,
];

/** What is wrong with the jobs as they ended, by kind; no row: nothing. */
async function listWrongs() {
  return sql`
    with ledger as (
      select job_id, count(*) as lines, max(ordinal) as last, count(*) filter (where outcome <> 'HANDED_BACK') as counted,
             count(*) filter (where outcome = 'SUCCEEDED') as won
      from attempts group by job_id
    ),
    seen as (
      select j.*, coalesce(l.lines, 0) as lines, coalesce(l.last, 0) as last, coalesce(l.counted, 0) as counted, coalesce(l.won, 0) as won,
             a.caller_id as owner_id, a.deleted_at, a.size_bytes, coalesce((j.result ->> 'fromCache')::boolean, false) as is_stored,
             (j.result ->> 'httpStatus')::int as http_status, coalesce((j.result ->> 'ageSeconds')::int, 0) as age_seconds
      from jobs j left join ledger l on l.job_id = j.id left join artifacts a on a.id = j.artifact_id
    )
    select wrong, count(*)::int from seen s cross join lateral (values
      ('has a gap in its ledger', s.lines <> s.last or s.lines <> s.attempt_number),
      ('is counted wrongly', s.counted <> s.attempts_used or s.attempts_used > s.attempt_budget),
      ('has another end than its attempts', s.won > 1 or (s.won = 1 and s.status <> 'SUCCEEDED')),
      ('succeeded without an attempt or an answer', s.status = 'SUCCEEDED' and s.won = 0 and not s.is_stored),
      ('has no bytes, or another caller''s', s.status = 'SUCCEEDED' and s.owner_id is distinct from s.caller_id),
      ('lost its bytes', s.deleted_at < s.finished_at + make_interval(secs => ${HOLD_MS / 1_000})),
      ('took what must not be stored', s.is_stored and s.http_status not between 200 and 299),
      ('took what is too large', s.is_stored and s.size_bytes > s.max_body_bytes),
      ('took what is too old', s.is_stored and s.age_seconds > case s.freshness
        when 'NO_CACHE' then -1 when 'FIVE_MINUTES' then 300 when 'ONE_HOUR' then 3600 else 86400 end)
    ) w (wrong, is_so) where w.is_so group by wrong order by wrong`;
}

test(
  "A7 three workers whose leases, connections, answers and bytes go at random end every job once, with bytes of its own caller's",
  { timeout: LASTS_MS + 60_000 },
  async () => {
    const { own } = openSite();
    await Promise.all([1, 2, 3].map(() => rig.startWorker({ graceMs: 500 })));
    const until = performance.now() + LASTS_MS;
    const repeat = async (step: () => PromiseLike<unknown>) => {
      while (performance.now() < until) await step();
    };
    await Promise.all([repeat(submit), repeat(maintain), repeat(() => oneOf(MISHAPS)())]);
    for (;;) {
      await maintain();
      const [row] = await sql<{ count: number }[]>`select count(*)::int from jobs where finished_at is null`;
      if (row?.count === 0) break;
    }
    expect(await listWrongs()).toEqual([]);
    const shared = await sql<{ number: string }[]>`
      select result -> 'headers' ->> 'x-number' as number from jobs where result -> 'headers' ? 'x-number'
      group by 1 having count(distinct caller_id) > 1`;
    expect(shared.filter(({ number }) => own.has(number))).toEqual([]);
    expect(shared.length).toBeGreaterThan(0);
    const [rest] = await sql`
      select (select count(*)::int from jobs where lease_token is not null) as leases,
             (select count(*)::int from jobs where (result ->> 'fromCache')::boolean) > 0 as has_taken,
             (select deadlocks::int from pg_stat_database where datname = current_database()) as deadlocks`;
    expect(rest).toEqual({ leases: 0, has_taken: true, deadlocks: 0 });
  },
);
