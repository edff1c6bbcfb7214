import type { Sql } from "@keble-scraper/db";
import { reviewArtifacts, type ReviewOptions } from "@keble-scraper/db/commands/artifacts";
import type { Signals } from "@keble-scraper/service";
import { sweep } from "../maintenance/sweep.ts";
import type { Step } from "../maintenance/tick.ts";

/** Artifacts of one transaction: what settles and pins wait for is a few milliseconds. */
const REVIEW_ROWS = 200;
/** Artifacts of one tick: about a second of work, so that the tick's other steps come round. */
const REVIEW_ROWS_MAX = 5_000;

/** Looks at artifacts that are due: puts those off that something holds, deletes the others. Talks to the database alone. */
export function reviewStep(parts: {
  readonly sql: Sql;
  readonly options: Omit<ReviewOptions, "limit">;
  readonly signals: Signals;
}): Step {
  return {
    name: "artifactsReviewed",
    async run(signal) {
      let left = REVIEW_ROWS_MAX;
      return sweep(
        REVIEW_ROWS,
        async (limit) => {
          if (left <= 0) return 0;
          const result = await reviewArtifacts(parts.sql, { ...parts.options, limit });
          left -= limit;
          if (result.deleted > 0) await parts.signals.reach("artifacts.marked", result);
          return result.reviewed;
        },
        signal,
      );
    },
  };
}
