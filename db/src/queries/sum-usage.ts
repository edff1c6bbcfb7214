import { USAGE_GROUPS_MAX } from "@keble-scraper/contract";
import { sql } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";

/** Sums over ended attempts. */
export type UsageTotal = {
  readonly attempts: number;
  readonly succeeded: number;
  /** Those that ended FAILED or LOST. */
  readonly failed: number;
  readonly bodyBytes: number;
  readonly wireBytes: number;
  readonly costMicros: number;
};

/** One group: a route, or a value of the label; `key` null: jobs without that label. */
export type UsageRow = UsageTotal & { readonly key: string | null };

/** An attempt's id carries the time at which some worker's clock said it ended: this far from the database's at the most. */
const CLOCKS_APART_MS = 3_600_000;
/** No job is open for longer: the longest deadline and a little. */
const JOB_OPEN_MS = 90_000_000;

/**
 * What attempts that ended in [from, to) used, by route or by a label's values, the dearest group first: at most 1,000 of
 * them, while `total` counts all. `callerId` null: every caller's. Ids are UUIDv7, so a range of them, an hour wider, is
 * what is read.
 */
export async function sumUsage(
  reads: PostgresJsDatabase,
  query: {
    readonly callerId: string | null;
    readonly from: Date;
    readonly to: Date;
    readonly groupBy: "route" | { readonly label: string };
  },
): Promise<{ readonly items: readonly UsageRow[]; readonly total: UsageTotal }> {
  const { from, to, groupBy, callerId } = query;
  const key = groupBy === "route" ? sql`a.route` : sql`j.labels ->> ${groupBy.label}`;
  const ofCaller =
    callerId === null
      ? sql``
      : sql`and j.caller_id = ${callerId} and j.id >= ${idAt(from, -JOB_OPEN_MS - CLOCKS_APART_MS)}::uuid`;
  const rows = await reads.execute<SummedRow>(sql`
    with groups as materialized (
      select ${key} as key, count(*)::float8 as attempts,
             count(*) filter (where a.outcome = 'SUCCEEDED')::float8 as succeeded,
             count(*) filter (where a.outcome in ('FAILED', 'LOST'))::float8 as failed,
             sum(a.body_bytes)::float8 as body_bytes, sum(a.wire_bytes)::float8 as wire_bytes, sum(a.cost_micros)::float8 as cost_micros
      from attempts a join jobs j on j.id = a.job_id
      where a.id >= ${idAt(from, -CLOCKS_APART_MS)}::uuid and a.id < ${idAt(to, CLOCKS_APART_MS)}::uuid
        and a.finished_at >= ${from.toISOString()}::timestamptz and a.finished_at < ${to.toISOString()}::timestamptz ${ofCaller}
      group by 1
    )
    (select true as is_total, null::text as key, coalesce(sum(attempts), 0) as attempts, coalesce(sum(succeeded), 0) as succeeded,
            coalesce(sum(failed), 0) as failed, coalesce(sum(body_bytes), 0) as body_bytes,
            coalesce(sum(wire_bytes), 0) as wire_bytes, coalesce(sum(cost_micros), 0) as cost_micros from groups)
    union all
    (select false, key, attempts, succeeded, failed, body_bytes, wire_bytes, cost_micros from groups
     order by cost_micros desc, attempts desc, key limit ${USAGE_GROUPS_MAX})`);
  const total = rows.find((row) => row.is_total);
  if (total === undefined) throw new Error("a sum without a row");
  const items = rows.filter((row) => !row.is_total).map((row) => ({ key: row.key, ...toTotal(row) }));
  return { items, total: toTotal(total) };
}

type SummedRow = {
  is_total: boolean;
  key: string | null;
  attempts: number;
  succeeded: number;
  failed: number;
  body_bytes: number;
  wire_bytes: number;
  cost_micros: number;
};

function toTotal(row: SummedRow): UsageTotal {
  return {
    attempts: row.attempts,
    succeeded: row.succeeded,
    failed: row.failed,
    bodyBytes: row.body_bytes,
    wireBytes: row.wire_bytes,
    costMicros: row.cost_micros,
  };
}

/** The first id of a millisecond, as UUIDv7 orders them. */
function idAt(time: Date, shiftMs: number): string {
  const hex = Math.max(0, time.getTime() + shiftMs)
    .toString(16)
    .padStart(12, "0")
    .slice(-12);
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}
