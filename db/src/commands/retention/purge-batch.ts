import type { PurgeKind } from "@keble-scraper/contract";
import type { Sql, Tx } from "../../database.ts";
import { purgeAudit, purgeBudgets, purgeCache, purgeFindings, purgeFlights, purgeTombstones } from "./purge-aged.ts";
import { purgeEvents } from "./purge-events.ts";
import { purgeJobs } from "./purge-jobs.ts";
import type { PurgeTake, PurgeTaken } from "./purge-take.ts";
import { countPurged, takePurgeTurn } from "./purge-turn.ts";

/** One batch: of which kind, and how much. */
export type PurgeBatch = {
  readonly kind: PurgeKind;
  /** Rows of one transaction; 1 at the least. */
  readonly batch: number;
  /** Of this kind, over all who purge. */
  readonly rowsPerMinute: number;
  /** How long the audit is kept, in days. */
  readonly auditDays: number;
  /** Where the batch before ended; null: at the beginning. */
  readonly since: Date | null;
};

/**
 * What became of a batch. BUSY: somebody else was purging. SPENT: the minute's rows of this kind have gone. PURGED: so
 * many rows are gone, and `next` is where to go on; null: nothing more of this kind can go now.
 */
export type PurgeAnswer =
  | { readonly verdict: "BUSY" }
  | { readonly verdict: "SPENT" }
  | { readonly verdict: "PURGED"; readonly rows: number; readonly next: { readonly since: Date | null } | null };

const PURGES = {
  events: purgeEvents,
  jobs: purgeJobs,
  cache: purgeCache,
  flights: purgeFlights,
  tombstones: purgeTombstones,
  findings: purgeFindings,
  budgets: purgeBudgets,
  audit: purgeAudit,
} as const satisfies Record<PurgeKind, (tx: Tx, take: PurgeTake) => Promise<PurgeTaken>>;

/**
 * Deletes expired rows of one kind, in one transaction that holds the one turn to purge: however many processes purge, in
 * no minute of the database's clock do more rows of a kind go than `rowsPerMinute`. A transaction that does not commit
 * has deleted and counted nothing. Waits for no lock on a job, an event, a delivery or an artifact.
 */
export async function purgeBatch(sql: Sql, options: PurgeBatch): Promise<PurgeAnswer> {
  const { kind, batch, rowsPerMinute, auditDays, since } = options;
  return sql.begin(async (tx): Promise<PurgeAnswer> => {
    const turn = await takePurgeTurn(tx, kind);
    if (turn === null) return { verdict: "BUSY" };
    const limit = Math.min(batch, rowsPerMinute - turn.purged);
    if (limit <= 0) return { verdict: "SPENT" };
    const { rows, taken, last } = await PURGES[kind](tx, { limit, since, auditDays });
    if (rows > 0) await countPurged(tx, kind, turn, rows);
    return { verdict: "PURGED", rows, next: taken < limit || rows === 0 ? null : { since: last } };
  });
}
