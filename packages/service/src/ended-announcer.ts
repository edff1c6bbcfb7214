import type { Bell } from "./bell.ts";
import { HINT_CHANNELS } from "./hint-channels.ts";
import type { Hints } from "./hints.ts";

/** A job that a command ended: whom to wake. `eventState` is PENDING where an event waits to be delivered. */
type Ended = { readonly id: string; readonly eventId: string | null; readonly eventState: string | null };

/** Tells others, after the commit, of jobs that ended. */
export type EndedAnnouncer = (jobs: readonly Ended[]) => void;

/**
 * Wakes whoever waits for the jobs, and the delivery worker when an event was made. Jobs that end in the same turn of the
 * event loop (those of one settled group) are told of together. Lossy, as hints and bells are.
 */
export function createEndedAnnouncer(options: {
  readonly hints: Pick<Hints, "publish">;
  readonly bell: Pick<Bell, "ring">;
}): EndedAnnouncer {
  let ended: Ended[] = [];

  function tell(): void {
    const told = ended;
    ended = [];
    options.hints.publish(
      HINT_CHANNELS.jobsEnded,
      told.map((job) => job.id),
    );
    const eventId = told.find((job) => job.eventState === "PENDING")?.eventId;
    if (eventId != null) options.bell.ring("callbacks", { eventId });
  }

  return (jobs) => {
    if (jobs.length === 0) return;
    if (ended.length === 0) setImmediate(tell);
    ended.push(...jobs);
  };
}
