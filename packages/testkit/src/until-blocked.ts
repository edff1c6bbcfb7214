import type postgres from "postgres";

const TIMEOUT_MS = 10_000;

/**
 * Resolves once a statement of this database waits for a lock: one of whoever calls itself `application`, else anybody's. Or
 * once `answered` has settled: then it did not have to wait. Needs a free connection of `sql`. Throws after 10 s.
 */
export async function untilBlocked(
  sql: postgres.Sql,
  { application, answered }: { readonly application?: string; readonly answered?: Promise<unknown> } = {},
): Promise<void> {
  const settled = new AbortController();
  const onAnswer = () => settled.abort();
  answered?.then(onAnswer, onAnswer);
  for (const until = performance.now() + TIMEOUT_MS; performance.now() < until;) {
    if (settled.signal.aborted) return;
    const waiting = await sql`
      select 1 from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'
        and application_name = coalesce(${application ?? null}::text, application_name)`;
    if (waiting.length > 0) return;
  }
  throw new Error("no statement waits for a lock");
}
