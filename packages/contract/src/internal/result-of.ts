import { z } from "zod";
import { DetailedFailure } from "../error-envelope.ts";
import type { Result } from "../failure.ts";

/** What a service's procedure answers: the value, or a failure that may carry details. */
export type ServiceResult<T> = Result<T, DetailedFailure>;

/** The schema of a `ServiceResult` of `value`. */
export function resultOf<T extends z.ZodType>(value: T) {
  return z.discriminatedUnion("ok", [
    z.strictObject({ ok: z.literal(true), value }),
    z.strictObject({ ok: z.literal(false), failure: DetailedFailure }),
  ]);
}
