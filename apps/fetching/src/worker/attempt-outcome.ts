import type { SpooledBody } from "@keble-scraper/artifact-store";
import type { LocalFailure } from "@keble-scraper/contract";
import type { CachedAnswer } from "@keble-scraper/db";
import type { AttemptReport, Booking, CacheVerdict } from "@keble-scraper/db/commands/fetching";

/** An attempt of which no byte was sent goes back uncounted. */
export type Release = {
  readonly kind: "RELEASED";
  /** When the job is due again, from now, spreading included. */
  readonly dueInMs: number;
  /** When its turn could come at the earliest, from now: at or past the deadline the job ends. */
  readonly horizonInMs: number;
  /** The times that admission booked and that nobody used; undefined: it was not asked, the job keeps what it has. */
  readonly booking: Booking | null | undefined;
  /** Set when this route is closed to the job: it goes on by its next one, or ends with this. */
  readonly closedBy: LocalFailure | null;
  /** True: another job is fetching what this one wants. It looks again at its caller's pace, and in `dueInMs` at the latest. */
  readonly waitsForFlight: boolean;
};

/**
 * What became of a run. ABANDONED: the lease is no longer ours or the job was cancelled, there is nothing to write. `body`
 * stays in the spool until the report has committed. `renews`: the stored answer that the report's bytes are of; were they gone,
 * the job goes again without it. TAKEN: the job has ended with a stored answer already.
 */
export type AttemptOutcome =
  | {
      readonly kind: "REPORTED";
      readonly report: AttemptReport;
      readonly body: SpooledBody | null;
      readonly renews?: CachedAnswer;
    }
  | { readonly kind: "TAKEN"; readonly verdict: CacheVerdict }
  | Release
  | { readonly kind: "ABANDONED" };

/** An attempt that was released is due again no sooner. */
const RELEASE_MS = 1_000;

/** A release that nothing else asked for than the attempt's own end. */
export function releaseSoon(more: Partial<Omit<Release, "kind">> = {}): Release {
  return {
    kind: "RELEASED",
    dueInMs: RELEASE_MS,
    horizonInMs: 0,
    booking: undefined,
    closedBy: null,
    waitsForFlight: false,
    ...more,
  };
}
