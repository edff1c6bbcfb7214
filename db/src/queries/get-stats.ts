import { type Backlog, type BoundedCount, formatTime, PURGE_KINDS, type Stats } from "@keble-scraper/contract";
import { type SQL, sql } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";

/** How far rows are counted: further, a count is a lower bound. 100,000 entries of an index take some 20 ms. */
const COUNT_MAX = 100_000;

type Reads = Pick<PostgresJsDatabase, "execute">;

/**
 * How the deployment is doing, but for what ended by the hour. Each figure is a statement that reads an index for at most
 * 100,000 entries, whatever the tables hold; they are not of one moment.
 */
export async function getStats(
  reads: PostgresJsDatabase,
  options: { readonly rowsPerMinute: number; readonly auditDays: number },
): Promise<Omit<Stats, "endedByHour">> {
  return reads.transaction(
    async (tx) => {
      // A count that stops early looks cheap to read in any order, and would read a whole table that has few such rows.
      await tx.execute(sql`set local enable_seqscan = off`);
      const now = await readNow(tx);
      const due = await readHeap(
        tx,
        sql`due_at`,
        sql`jobs where status = 'QUEUED' and due_at <= statement_timestamp()`,
      );
      const waiting = await readHeap(
        tx,
        sql`due_at`,
        sql`jobs where status = 'QUEUED' and due_at > statement_timestamp()`,
      );
      const running = await readHeap(tx, sql`lease_until`, sql`jobs where lease_token is not null`);
      return {
        observedAt: formatTime(now.at),
        openJobs: { queued: toCount(due), waiting: toCount(waiting), running: toCount(running) },
        due,
        callbacks: { due: await readDueDeliveries(tx), deadLetters: await readDeadLetters(tx) },
        purge: {
          rowsPerMinute: options.rowsPerMinute,
          kinds: toKinds(now.purged, {
            events: await readExpired(tx, "callback_events"),
            jobs: await readExpired(tx, "jobs"),
            cache: await readExpired(tx, "cache_entries"),
            flights: await readHeap(
              tx,
              sql`held_until`,
              sql`cache_flights where held_until <= statement_timestamp() - interval '1 hour'`,
            ),
            tombstones: await readReviews(tx, "DELETED"),
            findings: await readExpired(tx, "store_findings"),
            budgets: await readOldBudgets(tx, options.auditDays),
            audit: await readExpired(tx, "audit_events"),
          }),
        },
        store: {
          artifactsToReview: await readReviews(tx, "AVAILABLE"),
          objectsToDelete: await readHeap(tx, sql`due_at`, sql`object_deletions where due_at <= statement_timestamp()`),
          findings: {
            missing: await countFindings(tx, "MISSING"),
            damaged: await countFindings(tx, "DAMAGED"),
            orphans: await countFindings(tx, "ORPHAN"),
          },
          lastListingEndedAt: now.listingEndedAt === null ? null : formatTime(now.listingEndedAt),
        },
      };
    },
    { accessMode: "read only" },
  );
}

/** The days and months that purgeBudgets takes. */
function readOldBudgets(tx: Reads, auditDays: number): Promise<Backlog> {
  const kept = sql`((statement_timestamp() - make_interval(secs => ${Math.max(auditDays, 2)}::float8 * 86400)) at time zone 'UTC')::date`;
  const isOver = sql`(period = 'DAY' or starts_on + 31 <= ${kept})`;
  return readHeap(tx, sql`starts_on`, sql`budgets where starts_on < ${kept} and ${isOver} and reserved_micros = 0`);
}

type Now = {
  readonly at: Date;
  readonly purged: Readonly<Record<string, number>>;
  readonly listingEndedAt: Date | null;
};

async function readNow(tx: Reads): Promise<Now> {
  const [row] = await tx.execute<{ at: string; purged: Record<string, number>; listing: string | null }>(sql`
    select now.at::text as at, case when t.minute = date_trunc('minute', now.at) then t.purged else '{}'::jsonb end as purged,
           (select pass_ended_at::text from store_scrub where id = 1) as listing
    from (select date_trunc('milliseconds', clock_timestamp()) as at) now left join purge_turn t on t.id = 1`);
  if (row === undefined) throw new Error("a moment without a row");
  return {
    at: new Date(row.at),
    purged: row.purged,
    listingEndedAt: row.listing === null ? null : new Date(row.listing),
  };
}

type HeapRow = { count: number; oldest: number | null };

/** Counts `rows` in the order of `at`, their age. */
async function readHeap(tx: Reads, at: SQL, rows: SQL): Promise<Backlog> {
  const [row] = await tx.execute<HeapRow>(sql`
    select count(*)::int as count, extract(epoch from clock_timestamp() - min(heap.at))::float8 as oldest
    from (select ${at} as at from ${rows} order by ${at} limit ${COUNT_MAX + 1}) heap`);
  return toBacklog(row);
}

function readExpired(
  tx: Reads,
  table: "callback_events" | "jobs" | "cache_entries" | "store_findings" | "audit_events",
): Promise<Backlog> {
  const at = sql`expires_at`;
  return readHeap(
    tx,
    at,
    sql`${sql.identifier(table)} where expires_at is not null and expires_at <= statement_timestamp()`,
  );
}

/** No index has due deliveries by their time alone: so many that wait are looked at, and the due ones among them counted. */
async function readDueDeliveries(tx: Reads): Promise<Backlog> {
  const [row] = await tx.execute<HeapRow & { looked: number }>(sql`
    select (count(*) filter (where w.due_at <= statement_timestamp()))::int as count, count(*)::int as looked,
           extract(epoch from clock_timestamp() - min(w.due_at) filter (where w.due_at <= statement_timestamp()))::float8 as oldest
    from (select due_at from callback_deliveries where state = 'PENDING' limit ${COUNT_MAX + 1}) w`);
  return { ...toBacklog(row), isLowerBound: (row?.looked ?? 0) > COUNT_MAX };
}

/** The age is that of the event that has been one for longest, of the 1,000 oldest events. */
async function readDeadLetters(tx: Reads): Promise<Backlog> {
  const [row] = await tx.execute<HeapRow>(sql`
    select (select count(*)::int from (select 1 from callback_events where state = 'DEAD_LETTER' limit ${COUNT_MAX + 1}) dead) as count,
           (select extract(epoch from clock_timestamp() - min(dead.ended_at))::float8
            from (select ended_at from callback_events where state = 'DEAD_LETTER' order by id limit 1000) dead) as oldest`);
  return toBacklog(row);
}

function readReviews(tx: Reads, state: "AVAILABLE" | "DELETED"): Promise<Backlog> {
  const at = sql`review_at`;
  return readHeap(tx, at, sql`artifacts where state = ${state} and review_at <= statement_timestamp()`);
}

async function countFindings(tx: Reads, kind: "MISSING" | "DAMAGED" | "ORPHAN"): Promise<BoundedCount> {
  return toCount(await readHeap(tx, sql`found_at`, sql`store_findings where kind = ${kind}`));
}

function toKinds(
  purged: Readonly<Record<string, number>>,
  backlogs: Record<(typeof PURGE_KINDS)[number], Backlog>,
): Stats["purge"]["kinds"] {
  const entries = PURGE_KINDS.map((kind) => [kind, { purged: purged[kind] ?? 0, backlog: backlogs[kind] }] as const);
  return Object.fromEntries(entries) as Stats["purge"]["kinds"];
}

function toBacklog(row: HeapRow | undefined): Backlog {
  const { count, isLowerBound } = bound(row?.count ?? 0);
  const oldest = row?.oldest ?? null;
  return { count, isLowerBound, oldestSeconds: oldest === null ? null : Math.max(0, oldest) };
}

function toCount({ count, isLowerBound }: Backlog): BoundedCount {
  return { count, isLowerBound };
}

function bound(count: number): BoundedCount {
  return { count: Math.min(count, COUNT_MAX), isLowerBound: count > COUNT_MAX };
}
