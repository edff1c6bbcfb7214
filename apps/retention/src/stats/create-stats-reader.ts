import type { Stats } from "@keble-scraper/contract";
import { countEndedInHour, type Database, getStats } from "@keble-scraper/db";
import type { Clock } from "@keble-scraper/service";
import { createEndedByHour } from "./ended-by-hour.ts";

/** How long an answer stands: whoever asks, and however often, the database is asked once in this time at most. */
const STANDS_MS = 5_000;

/** Reads the stats, at most once in five seconds; all who ask meanwhile get the same ones. A read that fails is forgotten. */
export function createStatsReader(parts: {
  readonly database: Pick<Database, "reads">;
  readonly rowsPerMinute: number;
  readonly auditDays: number;
  readonly clock: Clock;
}): () => Promise<Stats> {
  const { database, clock } = parts;
  const endedByHour = createEndedByHour({ count: (hour) => countEndedInHour(database.reads, hour), clock });
  let stats: Promise<Stats> | undefined;
  let askedAt = 0;

  async function read(): Promise<Stats> {
    const counted = await getStats(database.reads, parts);
    return { ...counted, endedByHour: await endedByHour(new Date(counted.observedAt)) };
  }

  return () => {
    const now = clock.monotonicMs();
    if (stats === undefined || now - askedAt >= STANDS_MS) {
      const asked = read();
      stats = asked;
      askedAt = now;
      asked.catch(() => {
        if (stats === asked) stats = undefined;
      });
    }
    return stats;
  };
}
