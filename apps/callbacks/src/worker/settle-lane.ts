import type { TryReport, TryVerdict } from "@keble-scraper/db/commands/callbacks";

/** Settles reports in groups. */
export type SettleLane = {
  /**
   * The verdict on a report. While the database can't be reached the report is sent again, as it is, for as long as its
   * lease is trusted: a commit whose answer was lost then answers STALE. Past that it is STALE without being sent.
   * Rejects when the database refuses this very report.
   */
  settle(report: TryReport, isTrusted: () => boolean): Promise<TryVerdict>;
};

type Entry = {
  readonly report: TryReport;
  readonly isTrusted: () => boolean;
  resolve(verdict: TryVerdict): void;
  reject(error: unknown): void;
};

/** Rows of one statement. */
const GROUP_MAX = 50;
/** Between two tries while the database can't be reached. */
const RETRY_MS = 250;

/**
 * A lone report goes at once; those that come while a group is on its way make up the next. When a group fails and the
 * database is there, its members are settled one by one, so that one bad row harms no other.
 */
export function createSettleLane(options: {
  settleGroup(reports: readonly TryReport[]): Promise<readonly TryVerdict[]>;
  /** True for errors that say nothing about the rows: the connection was lost or refused, a statement timed out. */
  isOutage(error: unknown): boolean;
}): SettleLane {
  const waiting: Entry[] = [];
  let isSettling = false;

  async function pump(): Promise<void> {
    if (isSettling) return;
    isSettling = true;
    try {
      while (waiting.length > 0) await settleOrRetry(waiting.splice(0, GROUP_MAX));
    } finally {
      isSettling = false;
    }
  }

  async function settleOrRetry(group: readonly Entry[]): Promise<void> {
    let left = group;
    for (;;) {
      for (const entry of left) {
        if (!entry.isTrusted()) entry.resolve({ token: entry.report.token, verdict: "STALE" });
      }
      left = left.filter((entry) => entry.isTrusted());
      if (left.length === 0) return;
      try {
        answer(left, await options.settleGroup(left.map((entry) => entry.report)));
        return;
      } catch (error) {
        if (!options.isOutage(error)) return settleEach(left, error);
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  async function settleEach(group: readonly Entry[], error: unknown): Promise<void> {
    if (group.length === 1) group[0]?.reject(error);
    else for (const entry of group) await settleOrRetry([entry]);
  }

  return {
    settle(report, isTrusted) {
      return new Promise((resolve, reject) => {
        waiting.push({ report, isTrusted, resolve, reject });
        void pump();
      });
    },
  };
}

function answer(group: readonly Entry[], verdicts: readonly TryVerdict[]): void {
  const byToken = new Map(verdicts.map((verdict) => [verdict.token, verdict]));
  for (const entry of group) {
    const verdict = byToken.get(entry.report.token);
    if (verdict === undefined) entry.reject(new Error("a report got no verdict"));
    else entry.resolve(verdict);
  }
}
