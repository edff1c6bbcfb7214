import type { PurgeKind } from "@keble-scraper/contract";
import type { Tx } from "../../database.ts";

/** A minute of the database's clock, as text, and how many rows of a kind have gone in it. */
export type PurgeTurn = { readonly minute: string; readonly purged: number };

/**
 * Takes the one turn to purge, until the transaction ends. Null: somebody else has it. A minute other than the one that
 * was written down has seen no purge yet. A turn that was lost, as by a restore in part, is made anew: without it nothing
 * would ever be purged again, and nobody told.
 */
export async function takePurgeTurn(tx: Tx, kind: PurgeKind): Promise<PurgeTurn | null> {
  const [turn] = await tx<PurgeTurn[]>`
    select now.minute::text as minute,
           case when t.minute = now.minute then coalesce((t.purged ->> ${kind})::int, 0) else 0 end as purged
    from purge_turn t cross join (select date_trunc('minute', clock_timestamp()) as minute) now
    where t.id = 1
    for update of t skip locked`;
  if (turn !== undefined) return turn;
  const [made] = await tx<PurgeTurn[]>`
    insert into purge_turn (id, minute) values (1, date_trunc('minute', clock_timestamp()))
    on conflict (id) do nothing
    returning minute::text as minute, 0 as purged`;
  return made ?? null;
}

/** Counts `rows` of a kind in the turn's minute. */
export async function countPurged(tx: Tx, kind: PurgeKind, turn: PurgeTurn, rows: number): Promise<void> {
  const minute = tx`${turn.minute}::text::timestamptz`;
  await tx`
    update purge_turn
    set minute = ${minute},
        purged = case when minute = ${minute} then purged else '{}'::jsonb end
                 || jsonb_build_object(${kind}::text, ${turn.purged + rows}::int)
    where id = 1`;
}
