import type { Tx } from "../../database.ts";
import { quarantineColumns, type QuarantineRow } from "../../queries/quarantine-row.ts";
import type { Actor } from "../../steps/append-audit.ts";
import { quarantineRoutes } from "../../steps/quarantine-routes.ts";
import { toStorableText } from "../../to-storable-text.ts";

/** A quarantine to set. `reason` OPERATOR: a person's, which replaces whatever stands. `forMs`: a second at least; null: until released. */
export type NewQuarantine = {
  readonly route: string;
  readonly reason: string;
  readonly nativeCode: string | null;
  readonly note: string | null;
  readonly forMs: number | null;
  readonly by: Actor;
  /** Of the audit row; absent: the default. */
  readonly retentionDays?: number | undefined;
};

/**
 * Closes a route to all jobs, with its audit row in one statement. Returns the quarantine that stands; a longer one, or
 * an operator's, was not shortened. Jobs that list only it wait; those that run by it go on.
 */
export async function quarantineRoute(sql: Tx, quarantine: NewQuarantine): Promise<QuarantineRow> {
  const { route, reason, by, forMs } = quarantine;
  const [written] = await sql<QuarantineRow[]>`
    with closing_routes as materialized (
      select ${route}::text as route, null::uuid as job_id, ${reason}::text as reason, ${quarantine.nativeCode}::text as native_code,
             ${by.actor}::text as actor, ${quarantine.note === null ? null : toStorableText(quarantine.note)}::text as note,
             ${by.requestId}::text as request_id, now as quarantined_at,
             now + make_interval(secs => ${forMs === null ? null : Math.max(1_000, forMs) / 1_000}::float8) as lifts_at
      from (select clock_timestamp() as now) clock
    ),
    ${quarantineRoutes(sql, quarantine.retentionDays)}
    select ${quarantineColumns(sql)} from closed_routes`;
  if (written !== undefined) return written;
  const [standing] = await sql<QuarantineRow[]>`
    select ${quarantineColumns(sql)} from route_quarantines where route = ${route}`;
  // Released in between, which came last.
  if (standing === undefined) throw new Error("the route was released while it was being quarantined");
  return standing;
}
