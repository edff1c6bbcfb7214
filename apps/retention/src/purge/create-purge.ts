import { PURGE_KINDS, type PurgeKind } from "@keble-scraper/contract";
import type { PurgeAnswer, PurgeBatch } from "@keble-scraper/db/commands/retention";
import type { Clock, Logger } from "@keble-scraper/service";

/** Rows of one transaction: tens of milliseconds. A job goes with its attempts, its event, its deliveries and their tries. */
const BATCH_ROWS = 500;
const BATCH_JOBS = 200;

/** What a purge works with. */
export type PurgeParts = {
  purgeBatch(options: PurgeBatch): Promise<PurgeAnswer>;
  /** Of each kind. */
  readonly rowsPerMinute: number;
  readonly auditDays: number;
  /** How long one run may take: the rest of maintenance waits for it. */
  readonly runMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
};

/**
 * Deletes what has expired, a batch of each kind in turn, until the minute's rows of every kind have gone, nothing is
 * left, somebody else is purging, its time is over, or the signal aborts. A kind that fails harms no other. What went is
 * one line of log. Returns how many rows went; throws the first fault, once the other kinds are done.
 */
export function createPurge(parts: PurgeParts): (signal: AbortSignal) => Promise<number> {
  const { rowsPerMinute, auditDays, clock, logger } = parts;

  return async (signal) => {
    const startedAt = clock.monotonicMs();
    const purged: Partial<Record<PurgeKind, number>> = {};
    const faults: unknown[] = [];
    let sum = 0;
    const isOver = () => signal.aborted || clock.monotonicMs() - startedAt >= parts.runMs;
    let open: Turn[] = PURGE_KINDS.map((kind) => ({ kind, since: null }));

    /** Where this kind goes on; null: it is done for now. */
    async function purgeOne({ kind, since }: Turn): Promise<Turn | null> {
      const batch = kind === "jobs" ? BATCH_JOBS : BATCH_ROWS;
      const answer = await parts.purgeBatch({ kind, batch, rowsPerMinute, auditDays, since });
      if (answer.verdict !== "PURGED") return null;
      purged[kind] = (purged[kind] ?? 0) + answer.rows;
      sum += answer.rows;
      return answer.next === null ? null : { kind, since: answer.next.since };
    }

    while (open.length > 0 && !isOver()) {
      const next: Turn[] = [];
      for (const turn of open) {
        if (isOver()) break;
        try {
          const more = await purgeOne(turn);
          if (more !== null) next.push(more);
        } catch (error) {
          faults.push(error);
        }
      }
      open = next;
    }
    if (sum > 0) logger.info({ ...purged, totalMs: Math.round(clock.monotonicMs() - startedAt) }, "retention.purged");
    if (faults.length > 0) throw faults[0];
    return sum;
  };
}

type Turn = { readonly kind: PurgeKind; readonly since: Date | null };
