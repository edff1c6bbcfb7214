import type { Sql, Tx } from "../../database.ts";
import { recordFinding } from "./record-finding.ts";

/** An object of the store: `<sha256>/<generation>` below the prefix, the hash in lower-case hex. */
export type ListedObject = { readonly sha256: string; readonly generation: string };

/** Where the pass over the listing is. `cursor` null: at its beginning. Objects stored after `before` are too young to judge. */
export type ListingPlace = { readonly cursor: string | null; readonly passStartedAt: Date; readonly before: Date };

/**
 * Where to list next: begins a pass when none is under way and the last one began `everyMs` ago or more. Null: nothing
 * to do yet. `before` is `ageMs` ago, by the database's clock.
 */
export async function openListing(
  sql: Tx,
  options: { readonly everyMs: number; readonly ageMs: number },
): Promise<ListingPlace | null> {
  await sql`
    insert into store_scrub as s (id, pass_started_at) values (1, clock_timestamp())
    on conflict (id) do update set cursor = null, pass_started_at = clock_timestamp(), pass_ended_at = null
    where s.pass_started_at is null
      or (s.pass_ended_at is not null and s.pass_started_at + make_interval(secs => ${options.everyMs / 1000}::float8) <= clock_timestamp())`;
  const [place] = await sql<ListingPlace[]>`
    select cursor, pass_started_at as "passStartedAt",
           clock_timestamp() - make_interval(secs => ${options.ageMs / 1000}::float8) as before
    from store_scrub where id = 1 and pass_started_at is not null and pass_ended_at is null`;
  return place ?? null;
}

/**
 * Moves the pass on from a place whose page has been judged to `next`; null ends the pass. False: another worker was
 * first, and nothing was changed.
 */
export async function advanceListing(sql: Tx, from: ListingPlace, next: string | null): Promise<boolean> {
  const rows = await sql`
    update store_scrub set cursor = ${next}, pass_ended_at = case when ${next}::text is null then clock_timestamp() end
    where id = 1 and pass_ended_at is null and pass_started_at = ${from.passStartedAt}
      and cursor is not distinct from ${from.cursor}
    returning id`;
  return rows.length > 0;
}

/**
 * Those of at most 1,000 objects that no row names: no AVAILABLE blob, and no deletion, which each DELETING blob has. What a
 * deletion took away since it was listed is among them too: whoever asks looks whether it is still there.
 */
export async function listUnnamedObjects(sql: Tx, objects: readonly ListedObject[]): Promise<ListedObject[]> {
  if (objects.length === 0) return [];
  return sql<ListedObject[]>`
    select encode(o.sha256, 'hex') as sha256, o.generation
    from (select decode(sha256, 'hex') as sha256, generation
          from unnest(${objects.map((object) => object.sha256)}::text[], ${objects.map((object) => object.generation)}::text[])
            as listed (sha256, generation)) o
    where not exists (
        select 1 from blobs b where b.sha256 = o.sha256 and b.state = 'AVAILABLE' and b.generation = o.generation)
      and not exists (
        select 1 from object_deletions d where d.sha256 = o.sha256 and d.generation = o.generation)`;
}

/**
 * Queues an object that no row names for deletion, due now, with its finding, in one transaction. False: a row has come
 * to name it, and nothing was written.
 */
export async function queueOrphan(sql: Sql, object: ListedObject, retentionDays: number): Promise<boolean> {
  const { sha256, generation } = object;
  return sql.begin(async (tx) => {
    const queued = await tx`
      insert into object_deletions (id, sha256, generation)
      select uuid_v7(), decode(${sha256}, 'hex'), ${generation}
      where not exists (
        select 1 from blobs b
        where b.sha256 = decode(${sha256}, 'hex') and b.state = 'AVAILABLE' and b.generation = ${generation})
      on conflict (sha256, generation) do nothing
      returning id`;
    if (queued.length === 0) return false;
    await recordFinding(tx, { kind: "ORPHAN", sha256, generation, retentionDays });
    return true;
  });
}
