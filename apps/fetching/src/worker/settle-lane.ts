import type { AttemptReport, SettleVerdict } from "@keble-scraper/db/commands/fetching";

/** Settles reports in groups. */
export type SettleLane = {
  /**
   * The verdict on a report. While the database can't be reached the report is sent again, as it is, for as long as its
   * lease is trusted: a commit whose answer was lost then answers STALE. Past that it is STALE without being sent.
   * Rejects when the database refuses this very report.
   */
  settle(report: AttemptReport, isTrusted: () => boolean): Promise<SettleVerdict>;
};

type Entry = {
  readonly report: AttemptReport;
  readonly isTrusted: () => boolean;
  resolve(verdict: SettleVerdict): void;
  reject(error: unknown): void;
};

/** Rows of one statement, and how many statements at once: more lanes made no difference (measured). */
const GROUP_MAX = 50;
const LANES = 2;
/** What a report may wait for company while others are coming: a third less work for Postgres (measured). */
const GATHER_MS = 4;
/** Between two tries while the database can't be reached. */
const RETRY_MS = 250;

/**
 * A lone report goes at once; reports that come while slots are busy gather for 4 ms or 50 rows. When a group fails and
 * the database is there, its members are settled one by one, so that one bad row harms no other.
 */
export function createSettleLane(options: {
  settleGroup(reports: readonly AttemptReport[]): Promise<SettleVerdict[]>;
  /** True while other runs are under way that will want to settle soon. */
  isBusy(): boolean;
  /** True for errors that say nothing about the rows: the connection was lost or refused, a statement timed out. */
  isOutage(error: unknown): boolean;
}): SettleLane {
  const waiting: Entry[] = [];
  let lanesFree = LANES;
  let timer: NodeJS.Timeout | null = null;

  function pump(): void {
    while (lanesFree > 0 && waiting.length > 0) {
      if (waiting.length < GROUP_MAX && options.isBusy()) {
        timer ??= setTimeout(() => {
          timer = null;
          flush();
        }, GATHER_MS);
        return;
      }
      flush();
    }
  }

  function flush(): void {
    if (lanesFree === 0 || waiting.length === 0) return;
    lanesFree -= 1;
    const group = waiting.splice(0, GROUP_MAX);
    void settleOrRetry(group).finally(() => {
      lanesFree += 1;
      pump();
    });
  }

  async function settleOrRetry(group: readonly Entry[]): Promise<void> {
    const trusted = group.filter((entry) => {
      const isTrusted = entry.isTrusted();
      if (!isTrusted) entry.resolve({ token: entry.report.token, verdict: "STALE", ended: null });
      return isTrusted;
    });
    if (trusted.length === 0) return;
    try {
      const verdicts = new Map(
        (await options.settleGroup(trusted.map((entry) => entry.report))).map((row) => [row.token, row]),
      );
      for (const entry of trusted) {
        const verdict = verdicts.get(entry.report.token);
        if (verdict === undefined) entry.reject(new Error("a report got no verdict"));
        else entry.resolve(verdict);
      }
    } catch (error) {
      if (options.isOutage(error)) {
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        await settleOrRetry(trusted);
      } else if (trusted.length === 1) {
        trusted[0]?.reject(error);
      } else {
        for (const entry of trusted) await settleOrRetry([entry]);
      }
    }
  }

  return {
    settle(report, isTrusted) {
      return new Promise((resolve, reject) => {
        waiting.push({ report, isTrusted, resolve, reject });
        pump();
      });
    },
  };
}
