import type { EndedJob } from "@keble-scraper/db";

/** Tells others of jobs that ended. */
export type EndedAnnouncer = (jobs: readonly EndedJob[]) => void;

/** Jobs of one group are told of together: settled in one statement, they end in the same turn of the loop. */
export function createEndedAnnouncer(options: {
  publish(ids: readonly string[]): void;
  ringCallbacks(eventId: string): void;
}): EndedAnnouncer {
  let ended: EndedJob[] = [];

  function tell(): void {
    const told = ended;
    ended = [];
    options.publish(told.map((job) => job.id));
    const eventId = told.find((job) => job.eventState === "PENDING")?.eventId;
    if (eventId != null) options.ringCallbacks(eventId);
  }

  return (jobs) => {
    if (jobs.length === 0) return;
    if (ended.length === 0) setImmediate(tell);
    ended.push(...jobs);
  };
}
