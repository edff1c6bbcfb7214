import type { Tx } from "../../database.ts";

/** An object to delete from the store: `<sha256>/<generation>` below the prefix. */
export type ObjectDeletion = { readonly id: string; readonly sha256: string; readonly generation: string };

/**
 * Takes objects that are due, longest due first, by putting their next try off: a minute at first, then a quarter of the time
 * since they were queued, an hour at most. Whoever takes them deletes them and says so; what is never said, for whatever
 * reason, is given out again. An object that an AVAILABLE blob names is not given out, whoever queued it.
 */
export async function takeObjectDeletions(sql: Tx, limit: number): Promise<ObjectDeletion[]> {
  return sql<ObjectDeletion[]>`
    with taken as (
      update object_deletions
      set due_at = clock_timestamp()
                   + greatest(interval '1 minute', least(interval '1 hour', (clock_timestamp() - created_at) / 4))
      where id = any (array(
        select id from object_deletions where due_at <= statement_timestamp()
        order by due_at
        limit ${limit}
        for update skip locked
      ))
      returning id, sha256, generation
    )
    select t.id, encode(t.sha256, 'hex') as sha256, t.generation from taken t
    where not exists (
      select 1 from blobs b where b.sha256 = t.sha256 and b.state = 'AVAILABLE' and b.generation = t.generation
    )`;
}

/**
 * Ends deletions whose objects are gone from the store, each with its DELETING blob. One that has been ended already, or is
 * being ended by another, is passed over. Returns how many ended.
 */
export async function completeObjectDeletions(sql: Tx, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return 0;
  const [row] = await sql<[{ completed: number }]>`
    with removed as (
      delete from object_deletions
      where id = any (array(select id from object_deletions where id = any(${ids}::uuid[]) for update skip locked))
      returning blob_id
    ),
    forgotten as (
      delete from blobs b using removed r where b.id = r.blob_id and b.state = 'DELETING'
    )
    select count(*)::int as completed from removed`;
  return row.completed;
}
