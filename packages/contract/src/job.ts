import { z } from "zod";
import { EVENT_STATES } from "./callback-sets.ts";
import { Failure } from "./failure.ts";
import { ByteCount, HttpStatus, Id, Micros, Name, Sha256 } from "./id.ts";
import { ACCEPT, CAPTURES, FRESHNESS, JOB_STATUSES, METHODS, ROBOTS, ROUTES, TRANSPORTS } from "./job-sets.ts";
import { LabelFilter, Labels } from "./labels.ts";
import { PageQuery, pageOf } from "./page.ts";
import { EgressWishes, UrlText } from "./submit-job.ts";
import { Time, TimeInput } from "./time.ts";

/** The final response's headers: names lower-case, repeats joined by `, `, `set-cookie` a list. At most 16 KiB in all. */
export const ResponseHeaders = z.record(
  z.string().max(16_384),
  z.union([z.string().max(16_384), z.array(z.string().max(16_384)).max(200)]),
);
export type ResponseHeaders = z.infer<typeof ResponseHeaders>;

/** What a SUCCEEDED job obtained. A HEAD, 204 or 304 has no artifact: `artifactId` and `sha256` null, `sizeBytes` 0. */
export const JobResult = z.strictObject({
  httpStatus: HttpStatus,
  finalUrl: UrlText,
  /** The URLs that answered with a redirect, in order. */
  redirects: z.array(z.strictObject({ url: UrlText, httpStatus: HttpStatus })).max(20),
  headers: ResponseHeaders,
  contentType: z.strictObject({ declared: z.string().max(16_384).nullable(), sniffed: z.string().max(255).nullable() }),
  charset: z.strictObject({ declared: z.string().max(16_384).nullable(), detected: z.string().max(255).nullable() }),
  artifactId: Id.nullable(),
  sha256: Sha256.nullable(),
  sizeBytes: ByteCount,
  route: z.enum(ROUTES),
  fetchedAt: Time,
  /** True: the answer is a stored one. `route` and `fetchedAt` are those of the attempt that fetched its bytes. */
  fromCache: z.boolean(),
  /** Of a stored answer: how long ago its target had last vouched for it when the job took it, 0 when it did so for this job. */
  ageSeconds: z.int().min(0).optional(),
});
export type JobResult = z.infer<typeof JobResult>;

/**
 * A job's callback. It is PENDING, and `eventId` null, until the job ends; NOT_WANTED has no event either. An event that was
 * delivered or discarded is purged before its job as a rule: the state stays, and `eventId` is null.
 */
export const JobCallback = z.strictObject({
  endpoint: Name,
  eventId: Id.nullable(),
  state: z.enum(EVENT_STATES),
});
export type JobCallback = z.infer<typeof JobCallback>;

/** A job as its caller sees it. `callback` null: none was asked for. */
export const Job = z.strictObject({
  id: Id,
  callerId: Name,
  status: z.enum(JOB_STATUSES),
  target: z.strictObject({
    url: UrlText,
    method: z.enum(METHODS),
    headers: z.record(z.string().max(64), z.string().max(4_096)),
  }),
  transport: z.enum(TRANSPORTS),
  routes: z.array(z.enum(ROUTES)).min(1).max(ROUTES.length),
  /** What a RENDER keeps of the page. Absent: the transport is HTTP. */
  capture: z.enum(CAPTURES).optional(),
  freshness: z.enum(FRESHNESS),
  accept: z.enum(ACCEPT),
  robots: z.enum(ROBOTS),
  /** Absent: none were asked for. */
  egress: EgressWishes.optional(),
  limits: z.strictObject({
    attemptBudget: z.int().min(1).max(10),
    /** HANDED_BACK attempts are not counted. */
    attemptsUsed: z.int().min(0),
    deadlineAt: Time,
    maxBodyBytes: ByteCount,
    costCapMicros: Micros,
    costMicros: Micros,
  }),
  result: JobResult.nullable(),
  failure: Failure.nullable(),
  callback: JobCallback.nullable(),
  labels: Labels,
  createdAt: Time,
  dueAt: Time,
  finishedAt: Time.nullable(),
});
export type Job = z.infer<typeof Job>;

/** What a list of jobs is narrowed by. Newest first. `createdAfter` is exclusive, `createdBefore` too. */
export const JobQuery = PageQuery.extend({
  status: z.enum(JOB_STATUSES).optional(),
  label: LabelFilter.optional(),
  createdAfter: TimeInput.optional(),
  createdBefore: TimeInput.optional(),
});
export type JobQuery = z.infer<typeof JobQuery>;

/** A page of jobs, newest first. */
export const JobPage = pageOf(Job);
export type JobPage = z.infer<typeof JobPage>;
