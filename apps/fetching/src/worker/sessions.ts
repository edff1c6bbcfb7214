import type { FetchOutcome } from "@keble-scraper/egress";
import type { StickySessions } from "../sticky/sticky-sessions.ts";
import type { ClaimedJob } from "./claimed-job.ts";
import type { Way } from "./way.ts";

/** Which exit a job of a `stickyKey` comes out of, on routes whose supplier knows sessions. */
export type Sessions = {
  /** The id of the job's session; null: any exit will do. */
  sessionOf(job: ClaimedJob, way: Way): Promise<string | null>;
  /** A block, or a supplier's word that the exit is no good, makes the next attempt come out elsewhere. */
  onFailure(
    job: ClaimedJob,
    way: Way,
    fetched: FetchOutcome & { ok: false; aborted: false },
    session: string | null,
  ): Promise<void>;
};

/** Sessions are kept per caller, host, route and key. */
export function createSessions(sticky: StickySessions): Sessions {
  const keyOf = (job: ClaimedJob, way: Way) => {
    const stickyKey = job.egress?.stickyKey;
    return way.isSticky && stickyKey !== undefined
      ? { callerId: job.callerId, hostKey: job.hostKey, route: way.route, stickyKey }
      : null;
  };
  return {
    async sessionOf(job, way) {
      const key = keyOf(job, way);
      return key === null ? null : sticky.sessionFor(key);
    },
    async onFailure(job, way, { failure }, session) {
      const key = keyOf(job, way);
      if (key === null || session === null || failure.kind !== "UPSTREAM" || failure.action !== "ROTATE_SESSION")
        return;
      // Jobs that were blocked together rotate it once.
      await sticky.rotate(key, session);
    },
  };
}
