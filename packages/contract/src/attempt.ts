import { z } from "zod";
import { Failure } from "./failure.ts";
import { ByteCount, HttpStatus, Id, Micros } from "./id.ts";
import { ATTEMPT_OUTCOMES, ROUTES } from "./job-sets.ts";
import { PageQuery, pageOf } from "./page.ts";
import { Time } from "./time.ts";

const Ms = z.int().min(0).nullable();

/** Milliseconds of an attempt's stages; null: the stage was not reached or not measured. */
export const AttemptTimings = z.strictObject({
  queueMs: Ms,
  admissionMs: Ms,
  dnsMs: Ms,
  connectMs: Ms,
  ttfbMs: Ms,
  totalMs: Ms,
});
export type AttemptTimings = z.infer<typeof AttemptTimings>;

/**
 * One line of a job's ledger, written once when the attempt ends. `failure` is set for FAILED and LOST only.
 * `bodyBytes` are decoded, `wireBytes` as they came over the socket.
 */
export const Attempt = z.strictObject({
  id: Id,
  /** 1 for the first. HANDED_BACK attempts have an ordinal too. */
  ordinal: z.int().min(1),
  route: z.enum(ROUTES),
  startedAt: Time,
  finishedAt: Time,
  outcome: z.enum(ATTEMPT_OUTCOMES),
  httpStatus: HttpStatus.nullable(),
  failure: Failure.nullable(),
  bodyBytes: ByteCount,
  wireBytes: ByteCount,
  timings: AttemptTimings,
  costReservedMicros: Micros,
  costMicros: Micros,
  providerRequestId: z.string().max(200).nullable(),
  evidenceArtifactId: Id.nullable(),
});
export type Attempt = z.infer<typeof Attempt>;

/** How a job's ledger is paged. */
export const AttemptQuery = PageQuery;
export type AttemptQuery = PageQuery;

/** A page of a job's ledger, oldest first. */
export const AttemptPage = pageOf(Attempt);
export type AttemptPage = z.infer<typeof AttemptPage>;
