import type { Tx } from "../../database.ts";
import { deleteTombstones } from "../../steps/delete-tombstones.ts";
import { type PurgeTake, type PurgeTaken, sinceText } from "./purge-take.ts";

/** A lease that is over for so long is nobody's, whatever a worker's clock says. */
const FLIGHT_KEPT_SECONDS = 3_600;
/** A day is over for so long before what was spent on it goes, however short the audit is kept. */
const BUDGET_KEPT_DAYS_MIN = 2;

/** Deletes stored answers that nobody may take any more. */
export async function purgeCache(tx: Tx, take: PurgeTake): Promise<PurgeTaken> {
  return toTaken(
    await tx<GoneRow[]>`
    with expired as materialized (
      select key, caller_id, expires_at from cache_entries
      where expires_at <= statement_timestamp() and expires_at >= ${sinceText(take)}::text::timestamptz
      order by expires_at limit ${take.limit} for update skip locked
    )
    delete from cache_entries c using expired x where c.key = x.key and c.caller_id = x.caller_id
    returning x.expires_at as at`,
  );
}

/** Deletes the flights of leases that have long been over. */
export async function purgeFlights(tx: Tx, take: PurgeTake): Promise<PurgeTaken> {
  return toTaken(
    await tx<GoneRow[]>`
    with expired as materialized (
      select key, caller_id, held_until from cache_flights
      where held_until <= statement_timestamp() - make_interval(secs => ${FLIGHT_KEPT_SECONDS})
        and held_until >= ${sinceText(take)}::text::timestamptz
      order by held_until limit ${take.limit} for update skip locked
    )
    delete from cache_flights f using expired x where f.key = x.key and f.caller_id = x.caller_id
    returning x.held_until as at`,
  );
}

/** Deletes what is left of artifacts that were deleted for longer than the audit is kept, and that no job names any more. */
export async function purgeTombstones(tx: Tx, take: PurgeTake): Promise<PurgeTaken> {
  const { deleted, reviewed } = await deleteTombstones(tx, take.limit);
  return { rows: deleted, taken: reviewed, last: null };
}

/** Deletes findings of the store's scrub that have expired. */
export async function purgeFindings(tx: Tx, take: PurgeTake): Promise<PurgeTaken> {
  return toTaken(
    await tx<GoneRow[]>`
    with expired as materialized (
      select id, expires_at from store_findings
      where expires_at <= statement_timestamp() and expires_at >= ${sinceText(take)}::text::timestamptz
      order by expires_at limit ${take.limit} for update skip locked
    )
    delete from store_findings f using expired x where f.id = x.id
    returning x.expires_at as at`,
  );
}

/** Deletes what was spent in days and months that are over for longer than the audit is kept, and that nothing is out with. */
export async function purgeBudgets(tx: Tx, take: PurgeTake): Promise<PurgeTaken> {
  const days = Math.max(take.auditDays, BUDGET_KEPT_DAYS_MIN);
  const { count } = await tx`
    with old as materialized (
      select scope, name, period, starts_on from budgets
      where starts_on < ((statement_timestamp() - make_interval(secs => ${days}::float8 * 86400)) at time zone 'UTC')::date
        and (period = 'DAY' or starts_on + 31 <= ((statement_timestamp() - make_interval(secs => ${days}::float8 * 86400)) at time zone 'UTC')::date)
        and reserved_micros = 0
      order by starts_on limit ${take.limit} for update skip locked
    )
    delete from budgets b using old o
    where b.scope = o.scope and b.name = o.name and b.period = o.period and b.starts_on = o.starts_on`;
  return { rows: count, taken: count, last: null };
}

/** Deletes audit rows whose own clock has run out. Takes no lock: the service may delete these rows but not lock them. */
export async function purgeAudit(tx: Tx, take: PurgeTake): Promise<PurgeTaken> {
  return toTaken(
    await tx<GoneRow[]>`
    with expired as materialized (
      select id from audit_events
      where expires_at <= statement_timestamp() and expires_at >= ${sinceText(take)}::text::timestamptz
      order by expires_at limit ${take.limit}
    )
    delete from audit_events a using expired x where a.id = x.id
    returning a.expires_at as at`,
  );
}

type GoneRow = { readonly at: Date };

function toTaken(gone: readonly GoneRow[]): PurgeTaken {
  const last = gone.reduce<Date | null>((latest, { at }) => (latest === null || at > latest ? at : latest), null);
  return { rows: gone.length, taken: gone.length, last };
}
