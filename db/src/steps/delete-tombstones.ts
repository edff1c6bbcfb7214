import type { Tx } from "../database.ts";

/**
 * Removes tombstones of deleted artifacts whose time is over, longest over first, with their pins, at most `limit` of
 * them in the transaction `tx`. One that a job or an attempt still refers to is looked at again in a day. Nothing can begin
 * to refer to a tombstone, so one statement is enough. Returns how many went and how many were looked at.
 *
 * No EXISTS: the planner was seen to hash the whole ledger for it.
 */
export async function deleteTombstones(tx: Tx, limit: number): Promise<{ deleted: number; reviewed: number }> {
  const [row] = await tx<[{ deleted: number; reviewed: number }]>`
    with due as materialized (
      select a.id,
             coalesce((select 1 from jobs j where j.artifact_id = a.id limit 1),
                      (select 1 from attempts t where t.evidence_artifact_id = a.id limit 1)) is not null as is_named
      from artifacts a
      where a.review_at <= statement_timestamp() and a.state = 'DELETED'
      order by a.review_at
      limit ${limit}
      for update of a skip locked
    ),
    put_off as (
      update artifacts set review_at = clock_timestamp() + interval '1 day'
      where id = any (array(select id from due where is_named))
    ),
    deleted as (
      delete from artifacts where id = any (array(select id from due where not is_named)) returning id
    )
    select (select count(*) from deleted)::int as deleted, (select count(*) from due)::int as reviewed`;
  return row;
}
