import type { DueJob } from "@keble-scraper/db";
import type { BellKind } from "@keble-scraper/service";

/** Ids read at once: as many entries as may wait at a bell. */
export const DUE_JOBS_MAX = 1_000;

const BELLS = { HTTP: "fetch", RENDER: "render" } as const satisfies Record<DueJob["transport"], BellKind>;

/**
 * Rings for every due job, from one indexed read, at most `concurrency` at a time. A bell that takes no more, because too
 * many entries wait or Redis is away, gets no further ring in this round. Returns how many were rung.
 */
export async function publishDueJobs(
  parts: {
    list(limit: number): Promise<readonly DueJob[]>;
    publish(kind: BellKind, payload: object): Promise<boolean>;
    readonly concurrency: number;
  },
  signal: AbortSignal,
): Promise<number> {
  const due = await parts.list(DUE_JOBS_MAX);
  const full = new Set<BellKind>();
  let next = 0;
  let published = 0;

  async function ringOn(): Promise<void> {
    for (let job = due[next++]; job && !signal.aborted; job = due[next++]) {
      const kind = BELLS[job.transport];
      if (full.has(kind)) {
        continue;
      }
      if (await parts.publish(kind, { transport: job.transport, jobId: job.id })) {
        published += 1;
      } else {
        full.add(kind);
      }
    }
  }

  await Promise.all(Array.from({ length: Math.min(parts.concurrency, due.length) }, ringOn));
  return published;
}
