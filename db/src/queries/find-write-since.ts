import type { Tx } from "../database.ts";

/** The times that every write of a table leaves in one of its rows. */
const MARKS = {
  jobs: ["created_at", "attempt_started_at", "finished_at"],
  attempts: ["finished_at"],
  callback_events: ["created_at", "ended_at"],
  callback_deliveries: ["created_at", "try_started_at", "ended_at"],
  callback_tries: ["ended_at"],
  artifacts: ["created_at", "deleted_at"],
  blobs: ["created_at", "verified_at"],
  object_deletions: ["created_at"],
  artifact_pins: ["updated_at"],
  cache_entries: ["validated_at"],
  store_findings: ["found_at"],
} as const;

/**
 * A table with a row that was written after `since` (RFC 3339), the audit but for a reset's own rows included; null: there is
 * none, as for every moment that is still ahead. Reads tables whole where no index has the time.
 */
export async function findWriteSince(sql: Tx, since: string): Promise<string | null> {
  for (const [table, columns] of Object.entries(MARKS)) {
    for (const column of columns) {
      const [row] = await sql`select 1 from ${sql(table)} where ${sql(column)} > ${since}::text::timestamptz limit 1`;
      if (row !== undefined) return table;
    }
  }
  const [row] = await sql`
    select 1 from audit_events where occurred_at > ${since}::text::timestamptz and action not like 'reset.%' limit 1`;
  return row === undefined ? null : "audit_events";
}

/** Whether a moment (RFC 3339) is over by the database's clock. */
export async function isPast(sql: Tx, moment: string): Promise<boolean> {
  const [row] = await sql<{ past: boolean }[]>`select ${moment}::text::timestamptz < clock_timestamp() as past`;
  return row?.past === true;
}
