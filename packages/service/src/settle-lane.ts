/** Settles reports in groups. */
export type SettleLane<R, V> = {
  /**
   * The verdict on a report. While the database can't be reached the report is sent again, as it is, for as long as its
   * lease is trusted: a commit whose answer was lost is answered as stale then. Past that it is stale without being sent.
   * Rejects when the database refuses this very report.
   */
  settle(report: R, isTrusted: () => boolean): Promise<V>;
};

type Entry<R, V> = {
  readonly report: R;
  readonly isTrusted: () => boolean;
  resolve(verdict: V): void;
  reject(error: unknown): void;
};

/** Rows of one statement. */
const GROUP_MAX = 50;
/** What a report may wait for company while others are coming: a third less work for Postgres (measured). */
const GATHER_MS = 4;
/** Between two tries while the database can't be reached. */
const RETRY_MS = 250;

/**
 * A lone report goes at once; while others are coming, reports gather for 4 ms or 50 rows, and those that come while all
 * lanes are taken make up the next group. When a group fails and the database is there, its members are settled one by
 * one, so that one bad row harms no other.
 */
export function createSettleLane<R extends { readonly token: string }, V extends { readonly token: string }>(options: {
  /** Statements at once. */
  readonly lanes: number;
  settleGroup(reports: readonly R[]): Promise<readonly V[]>;
  /** The verdict on a report that may not be sent any more. */
  stale(report: R): V;
  /** True while other runs are under way that will want to settle soon. */
  isBusy(): boolean;
  /** True for errors that say nothing about the rows: the connection was lost or refused, a statement timed out. */
  isOutage(error: unknown): boolean;
}): SettleLane<R, V> {
  const waiting: Entry<R, V>[] = [];
  let lanesFree = options.lanes;
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
    void settleOrRetry(waiting.splice(0, GROUP_MAX)).finally(() => {
      lanesFree += 1;
      pump();
    });
  }

  async function settleOrRetry(group: readonly Entry<R, V>[]): Promise<void> {
    let left = group;
    for (;;) {
      for (const entry of left) {
        if (!entry.isTrusted()) entry.resolve(options.stale(entry.report));
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

  async function settleEach(group: readonly Entry<R, V>[], error: unknown): Promise<void> {
    if (group.length === 1) group[0]?.reject(error);
    else for (const entry of group) await settleOrRetry([entry]);
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

function answer<R extends { readonly token: string }, V extends { readonly token: string }>(
  group: readonly Entry<R, V>[],
  verdicts: readonly V[],
): void {
  const byToken = new Map(verdicts.map((verdict) => [verdict.token, verdict]));
  for (const entry of group) {
    const verdict = byToken.get(entry.report.token);
    if (verdict === undefined) entry.reject(new Error("a report got no verdict"));
    else entry.resolve(verdict);
  }
}
