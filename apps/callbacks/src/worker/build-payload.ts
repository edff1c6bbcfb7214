import type { EventType, Job } from "@keble-scraper/contract";

/** The most bytes a callback's body has: receivers commonly refuse more. */
export const PAYLOAD_BYTES_MAX = 65_536;

/** What is left out of the job, in this order, until the body is small enough. The job can be read in full by its id. */
const CUTS: readonly ((job: Job) => Job)[] = [
  (job) => withResult(job, { headers: {} }),
  (job) => withResult(job, { redirects: [] }),
  (job) => ({ ...job, target: { ...job.target, headers: {} } }),
  (job) => {
    const { contentType, charset } = job.result ?? {};
    if (contentType === undefined || charset === undefined) return job;
    return withResult(job, {
      contentType: { ...contentType, declared: null },
      charset: { ...charset, declared: null },
    });
  },
];

/**
 * The body of an event's callbacks: `{ id, type, occurredAt, data: { job } }` as JSON, the job as it is read. It is built
 * once and stored; every try sends those bytes. What remains after all cuts is bounded by the contract: two URLs of
 * 8 KiB, labels and a failure.
 */
export function buildPayload(event: {
  readonly id: string;
  readonly type: EventType;
  readonly occurredAt: Date;
  readonly job: Job;
}): string {
  const { id, type } = event;
  const occurredAt = event.occurredAt.toISOString();
  const textOf = (job: Job) => JSON.stringify({ id, type, occurredAt, data: { job } });
  let job = event.job;
  let text = textOf(job);
  for (const cut of CUTS) {
    if (Buffer.byteLength(text, "utf8") <= PAYLOAD_BYTES_MAX) break;
    job = cut(job);
    text = textOf(job);
  }
  return text;
}

function withResult(job: Job, part: Partial<NonNullable<Job["result"]>>): Job {
  return job.result === null ? job : { ...job, result: { ...job.result, ...part } };
}
